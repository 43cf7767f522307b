# SPDX-License-Identifier: GPL-2.0
"""What a run hands back, and how each way to break a guest is told apart."""

import functools
import re
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from mtlab.build import kernels, target
from mtlab.run import failure, process
from mtlab.run.testing import LabRun

HERE = Path(__file__).parent
FOREVER = 1e6               # seconds


@functools.cache
def crash_module_for(kernel: str, folder: Path) -> Path:
    """The module that breaks a kernel in a chosen way."""
    shutil.copytree(HERE / "crash", folder / kernel / "crash")
    target.build_module(kernels.get(kernel), folder / kernel / "crash")
    return folder / kernel / "crash/crash.ko"


@pytest.fixture(scope="session")
def crash_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crash")


@pytest.fixture
def crash_module(crash_folder: Path) -> Path:
    return crash_module_for(kernels.DEFAULT, crash_folder)


@pytest.mark.parametrize("kernel", kernels.SERIES)
def test_status_output_and_files(lab_run: LabRun, tmp_path: Path, kernel: str) -> None:
    pushed = tmp_path / "in.txt"
    pushed.write_text("from the host\n")
    big = 5_000_000
    result = lab_run(f"cat in.txt; echo warned >&2; echo $PWD; mkdir d; seq 3 >d/s; head -c {big} /dev/zero >big;"
                     "uname -r; exit 7", kernel=kernel, push=[pushed], pull=["d", "bi*"], module=False)
    assert result.status == 7
    assert result.output.split("\n")[:3] == ["from the host", "warned", "/root"]
    release = kernels.get(kernel).release
    assert f"\n{release}\n" in result.output
    assert kernel == kernels.CURRENT or release.startswith(f"{kernel}.")
    assert result.files["d/s"] == b"1\n2\n3\n"
    assert result.files["big"] == bytes(big)


def test_random_numbers_are_there_at_once(lab_run: LabRun) -> None:
    """No program waits for the kernel to have gathered randomness, which takes more instructions than a boot."""
    result = lab_run("cut -d' ' -f1 /proc/uptime; head -c 8 /dev/random | md5sum; cut -d' ' -f1 /proc/uptime",
                     clock="virtual", module=False, profile="none")
    before, _, after = result.output.splitlines()
    assert float(after) - float(before) < 0.1


def test_the_map_of_memory_changes_beside_busy_cpus(lab_run: LabRun) -> None:
    """A device's registers come and go while other CPUs use those of their interrupt controllers."""
    result = lab_run("""
for cpu in 1 2 3; do while :; do /bin/true; done & done
for turn in $(seq 5000); do
	printf '\\0\\0\\0\\0\\0\\0' > /sys/bus/pci/devices/0000:00:02.0/config
	printf '\\0\\0\\0\\0\\2\\0' > /sys/bus/pci/devices/0000:00:02.0/config
done
for cpu in 0 1 2 3; do taskset -c $cpu sleep 0.1; done
kill $(jobs -p)""", module=False, profile="none", cpus=4,
                     qemu=["-device", "pci-testdev,membar=64K,addr=2"])
    assert result.ok, result.output


def test_high_status(lab_run: LabRun) -> None:
    assert lab_run("exit 255", module=False, profile="none").status == 255


def test_missing_file_is_said(lab_run: LabRun) -> None:
    result = lab_run("true", pull=["nothing"], expect="missing", module=False, profile="none")
    assert result.failure and "nothing" in str(result.failure)


# Newer kernels word their reports otherwise.
@pytest.mark.parametrize("kernel", [kernels.DEFAULT, kernels.CURRENT])
@pytest.mark.parametrize(("how", "kind", "shown"), [
    ("panic", "panic", "crash: as asked"),
    ("oops", "oops", "crash_init"),
    ("bug", "bug", "kernel BUG at"),
    ("warning", "warning", "crash: as asked"),
    ("atomic", "lockdep", "scheduling while atomic"),
])
def test_broken_kernel(lab_run: LabRun, crash_folder: Path, kernel: str, how: str, kind: str, shown: str) -> None:
    result = lab_run(f"insmod crash.ko how={how}", push=[crash_module_for(kernel, crash_folder)], expect=kind,
                     module=False, profile="none", kernel=kernel)
    assert result.status == failure.KINDS[kind][0]
    assert shown in str(result.failure)


@pytest.mark.parametrize("stall", [1000, 14])
def test_dead_kernel_is_a_hang(lab_run: LabRun, crash_module: Path, monkeypatch: pytest.MonkeyPatch,
                               stall: int) -> None:
    """All CPUs spin with interrupts off: only the NMI still gets through, be it the lab's or the kernel's own.

    The command's time is up twelve seconds after they do, however long a busy host takes until then.
    """
    clock, later = time.monotonic, [0.0]
    poll = process.Tail.poll

    def polled(console: process.Tail) -> bool:
        new = poll(console)
        if "crash: all CPUs spin" in console.text and not later[0]:
            later[0] = FOREVER - 12
        return new

    monkeypatch.setattr(process.Tail, "poll", polled)
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: clock() + later[0], sleep=time.sleep))
    result = lab_run("insmod crash.ko how=spin", push=[crash_module], expect="hang", timeout=FOREVER,
                     module=False, profile="none", append=f"rcupdate.rcu_cpu_stall_timeout={stall}")
    text = str(result.failure)
    assert "CPU: 0" in text and "CPU: 1" in text


def test_a_guest_that_the_host_hardly_runs_is_not_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer to a key takes five seconds of the clock, and none of a CPU."""
    said, now = tmp_path / "console", [0.0]
    said.touch()

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] > 5 and not said.stat().st_size:
            said.write_text("sysrq: Changing Loglevel\n")

    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    asked: list[str] = []
    qmp = SimpleNamespace(ask=lambda seconds, name, **arguments: asked.append(name))
    child = SimpleNamespace(poll=lambda: None, pid=0)
    found = process._hang_or_timeout(qmp, child, process.Tail(said, None), 1, "the command")
    assert found.kind == "timeout" and "inject-nmi" not in asked


def test_blocked_task_is_a_hang(lab_run: LabRun, crash_module: Path) -> None:
    result = lab_run("echo 5 >/proc/sys/kernel/hung_task_timeout_secs; insmod crash.ko how=block",
                     push=[crash_module], expect="hang", module=False, profile="none")
    assert "blocked for more than" in str(result.failure) and "crash_init" in str(result.failure)


def test_slow_command_is_a_timeout(lab_run: LabRun) -> None:
    result = lab_run("sleep 1000", expect="timeout", timeout=3, module=False, profile="none")
    assert result.failure and "the command had 3 s" in str(result.failure)


def test_a_timeout_names_the_tasks_that_wait(lab_run: LabRun, crash_module: Path) -> None:
    result = lab_run("insmod crash.ko how=block", push=[crash_module], expect="timeout", timeout=3, module=False,
                     profile="none")
    text = str(result.failure)
    assert re.search(r"task:insmod +state:D", text) and "crash_init" in text


def test_a_guest_that_never_says_a_word_is_given_up_soon(lab_run: LabRun) -> None:
    """As with a KVM that cannot run anything: -S is a processor that does not start."""
    result = lab_run("true", qemu=["-S"], expect="hang", silence=3, module=False, profile="none")
    assert "not a word from it in 3 s" in str(result.failure)


def test_broken_emulator_is_said(lab_run: LabRun) -> None:
    result = lab_run("true", qemu=["-device no-such-device"], expect="qemu", module=False, profile="none")
    assert "no-such-device" in str(result.failure)

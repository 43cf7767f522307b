# SPDX-License-Identifier: GPL-2.0
"""Runs side by side, runs that are interrupted, and runs that must be the same to the bit."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from mtlab.run.testing import LabRun

QUICK = ["--no-module", "--profile", "none"]


def _processes(marker: str) -> list[str]:
    """Command lines of living processes that contain a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line and "qemu-system" in line:
            found.append(line)
    return found


def test_two_runs_at_once_do_not_meet(lab_run: LabRun) -> None:
    """Both write their device's first block and read it back; each finds its own."""
    def one(word: str) -> str:
        return lab_run(f"echo {word} | dd of=/dev/nvme0n1 bs=4096 conv=sync oflag=direct status=none; sleep 2;"
                       "head -c 8 /dev/nvme0n1; uname -r", profile="stock", module=False).output

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, ("aaaaaaa", "bbbbbbb"))
    assert first.startswith("aaaaaaa\n") and second.startswith("bbbbbbb\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(lab: Path, number: int, tmp_path: Path) -> None:
    env = dict(os.environ, TMPDIR=str(tmp_path))
    signal.signal(signal.SIGINT, signal.default_int_handler)    # not ignored, as below a job in the background
    out = tmp_path / "out"
    command = [lab, "run", *QUICK, "--pull", "x", "--out", out, "--", "echo there >x; echo ready; sleep 1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True) as running:
        assert running.stdout and running.stdout.readline() == "ready\n"
        assert _processes(str(tmp_path))
        running.send_signal(number)
        status = running.wait(timeout=60)
    deadline = time.monotonic() + 60        # the kernel ends the emulator of a killed lab in its own time
    while _processes(str(tmp_path)) and time.monotonic() < deadline:
        os.sched_yield()
    assert not _processes(str(tmp_path))
    assert not out.exists()
    if number != signal.SIGKILL:
        assert status == 130
        assert not list(tmp_path.iterdir())


@contextmanager
def _busy_core() -> Iterator[None]:
    """Another process loads one of the host's cores."""
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as load:
        try:
            yield
        finally:
            load.kill()


def test_virtual_time_is_the_same_to_the_bit(lab_run: LabRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The FTL on the flash device: a run alone, one beside a busy core, one with another temporary folder."""
    def one() -> tuple[str, str, bytes, str]:
        result = lab_run("mtftl format --force --uuid 6d746674-6c00-4000-8000-000000000001 /dev/nvme0n1 && "
                         "mtftl open /dev/nvme0n1 ftl && "
                         "fio --name=a --filename=/dev/mapper/ftl --direct=1 --rw=randwrite --bs=4k --size=8M "
                         "--numjobs=2 --fsync=64 --runtime=20ms --time_based --output-format=json --output=fio.json; "
                         "dmsetup status ftl; cat /proc/interrupts; cat /proc/uptime",
                         clock="virtual", cpus=2, profile="tlc", pull=["fio.json"], timeout=600)
        return result.inputs, result.output, result.files["fio.json"], result.console

    first = one()
    with _busy_core():
        assert one() == first
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert one() == first

# SPDX-License-Identifier: GPL-2.0
"""Saved boot states: what is not fit is made anew, halves are never seen, and a run does not know which one it had."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mtlab.run import machine, states
from mtlab.run.options import Options
from mtlab.run.outcome import Result
from mtlab.run.testing import LabRun
from mtlab.util import base
from mtlab.util.base import BUILD, ROOT, LabError, digest

MEMORY = [64 << 20]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of states of our own, and of their locks: these are shared by keys that begin alike."""
    monkeypatch.setattr(states, "FOLDER", tmp_path / "boot")
    monkeypatch.setattr(states, "lock", lambda name: base.lock(str(tmp_path / name)))
    return tmp_path / "boot"


@pytest.fixture
def saves(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """States are made without a guest; the folders in which that was done."""
    done: list[Path] = []

    def save(part: Path, *_arguments: object) -> None:
        done.append(part)
        (part / "ram").write_bytes(b"ram" * 10_000)
        (part / "state").write_bytes(b"state")
        (part / "console").write_text(f"boot {len(done)}\n")

    monkeypatch.setattr(states, "_save", save)
    return done


def _get(key: str = "a0") -> str:
    """The console of a state, when all of it can be read."""
    with states.get(key, list, MEMORY, 60, lambda: None) as state:
        assert os.pread(state.ram, 3, 29_997) == b"ram" and os.pread(state.state, 9, 0) == b"state"
        return state.console


def _cut(name: str) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, 3)


def _say_else(name: str, value: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        about = json.loads((folder / "about.json").read_text())
        (folder / "about.json").write_text(json.dumps(about | {name: value}))
    return edit


@pytest.mark.parametrize(("spoil", "said"), [
    (_cut("ram"), "is damaged"),
    (_cut("state"), "is damaged"),
    (_cut("about.json"), "is not whole"),
    (lambda folder: (folder / "ram").unlink(), "is not whole"),
    (_say_else("version", states.VERSION + 1), "is of another version"),
    (_say_else("host", "another"), "was made on another processor"),
])
def test_an_unfit_state_is_made_anew(place: Path, saves: list[Path], spoil: Callable[[Path], None], said: str,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    assert _get() == _get() == "boot 1\n"
    capsys.readouterr()
    spoil(place / "a0")
    assert _get() == _get() == "boot 2\n" and len(saves) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and f"boot state a0 {said}, it is thrown away: making it" in lines[0]


def test_labs_at_once_make_a_state_once(place: Path, saves: list[Path]) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: _get(), range(8))) == {"boot 1\n"}
    assert len(saves) == 1 and [p.name for p in place.iterdir()] == ["a0"]


def test_who_has_a_state_keeps_it(place: Path, saves: list[Path]) -> None:
    with states.get("a0", list, MEMORY, 60, lambda: None) as state:
        states.throw_away("a0")
        assert not (place / "a0").exists()
        assert Path(f"/proc/self/fd/{state.ram}").read_bytes() == b"ram" * 10_000


def test_states_used_last_stay(place: Path, saves: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _get("a0")
    used = sum(file.stat().st_blocks * 512 for file in (place / "a0").iterdir())
    monkeypatch.setattr(states, "LIMIT", 2 * used)
    for at, key in enumerate(("a0", "a1")):
        _get(key)
        os.utime(place / key, (at, at))
    _get("a0")                  # used again
    _get("a2")
    assert {p.name for p in place.iterdir()} == {"a0", "a2"}


def test_a_state_in_the_making_is_left_alone(place: Path, saves: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """While a lab makes one, another one throws away what takes too much, and what a killed lab left."""
    save = states._save

    def save_beside_another(part: Path, *arguments: Any) -> None:
        save(part, *arguments)
        with monkeypatch.context() as another:
            another.setattr(states, "LIMIT", 0)
            states._tidy()

    monkeypatch.setattr(states, "_save", save_beside_another)
    (place / "a1.part").mkdir(parents=True)
    assert _get() == "boot 1\n"
    assert [p.name for p in place.iterdir()] == ["a0"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), states.BootError("x")])
def test_a_state_that_fails_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def save(part: Path, *_arguments: object) -> None:
        (part / "ram").write_bytes(b"half")
        raise error

    monkeypatch.setattr(states, "_save", save)
    with pytest.raises(LabError if isinstance(error, OSError) else type(error)) as raised:
        _get()
    assert not list(place.iterdir())
    if isinstance(error, OSError):
        assert "No space left" in str(raised.value) and "--boot" in str(raised.value)


def test_an_emulator_that_finds_no_space_is_understood(place: Path) -> None:
    """It dies of a page of the guest's memory for which the disk has no block."""
    with pytest.raises(LabError, match="No space left"), \
            states.get("a0", lambda: ["sh", "-c", "kill -BUS $$"], MEMORY, 60, lambda: None):
        pass
    assert not list(place.iterdir())


def test_a_full_disk_is_said_before_anything_is_booted(tmp_path: Path) -> None:
    program = (f"from mtlab.run import states; from pathlib import Path; states.FOLDER = Path(r'{tmp_path}')\n"
               "with states.get('a0', list, [64 << 20], 60, list): pass")
    small = f'mount -t tmpfs -o size=64M none {tmp_path} && exec "$@"'
    done = subprocess.run(["unshare", "-rm", "sh", "-c", small, "sh", sys.executable, "-Bc", program],
                          cwd=ROOT / "scripts", capture_output=True, text=True)
    assert "LabError" in done.stderr and "0.1 GiB free, a saved boot state" in done.stderr
    assert not list(tmp_path.iterdir())


def _own_states(lab_run: LabRun, command: str, **options: object) -> Result:
    return lab_run(command, clock="virtual", cpus=1, module=False, profile="none", **options)


def test_a_state_that_does_not_load_is_thrown_away(lab_run: LabRun, place: Path,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    """Each of its marks is right, and yet QEMU does not take it: the run boots from scratch."""
    start = _own_states(lab_run, "true").start
    folder = place / start
    (folder / "state").write_bytes(b"\0" * 100)
    files = json.loads((folder / "about.json").read_text())["files"] | {"state": digest(folder / "state")}
    _say_else("files", files)(folder)
    capsys.readouterr()
    result = _own_states(lab_run, "echo done")
    assert result.output == "done\n" and result.start == "boot" and not folder.exists()
    assert capsys.readouterr().err.count("no saved boot state") == 1


@pytest.mark.usefixtures("emulator_binary")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_making_leaves_nothing(number: int, tmp_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)    # not ignored, as below a job in the background
    program = ("import sys; from pathlib import Path; from mtlab.cmd import cli; "
               "from mtlab.run import states; from mtlab.util import base\n"
               f"base.BUILD = Path(r'{tmp_path}'); states.FOLDER = base.BUILD / 'boot'; sys.exit(cli.main())")
    command = [sys.executable, "-Bc", program, "run", "--clock", "virtual", "--no-module", "--profile", "none", "true"]
    with subprocess.Popen(command, cwd=ROOT / "scripts") as lab:
        while not list(tmp_path.glob("boot/*.part/ram")) and lab.poll() is None:
            time.sleep(0.01)
        key = next(tmp_path.glob("boot/*.part")).name[0]
        lab.send_signal(number)
        assert lab.wait(timeout=60) == 130
    assert not list((tmp_path / "boot").iterdir())
    assert subprocess.run(["pgrep", "-f", f"mem-path={tmp_path}"], capture_output=True).returncode == 1
    with open(tmp_path / f"locks/boot-state-{key}", "r+") as f:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_state_made_anew_is_the_same(lab_run: LabRun, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest's memory to the byte, and so all that a run from it gives, whatever its quantum."""
    def one(folder: Path) -> tuple[Result, Result]:
        monkeypatch.setattr(states, "FOLDER", folder)
        first, second = (lab_run("mtftl format --force /dev/nvme0n1; cat /proc/interrupts /proc/uptime; dmesg; "
                                 "head -c 8 /dev/urandom | od -x", clock="virtual", cpus=2, quantum=quantum)
                         for quantum in (1000, 500))
        assert first.start == second.start != "boot" and first.inputs != second.inputs
        return first, second

    kept, anew = one(BUILD / "kept/boot"), one(place)
    for a, b in zip(kept, anew):
        assert (a.start, a.inputs, a.output, a.console) == (b.start, b.inputs, b.output, b.console)
    rams = [folder / kept[0].start / "ram" for folder in (BUILD / "kept/boot", place)]
    assert subprocess.run(["cmp", *rams]).returncode == 0


def test_stalls_begin_with_the_run(lab_run: LabRun) -> None:
    """From the same state; they cost time, another seed is another run, and the same one the same to the bit."""
    command = ("for i in 1 2 3; do (seq 2000 | sort -rn | sha256sum; echo ${EPOCHREALTIME/./}) & done; wait; "
               "echo ${EPOCHREALTIME/./}")
    runs = [lab_run(command, clock="virtual", cpus=2, module=False, profile="none", stall=stall, seed=seed)
            for stall, seed in ((0, 1), (1_000_000, 1), (1_000_000, 1), (1_000_000, 2))]
    assert all(run.status == 0 for run in runs)
    assert len({run.start for run in runs}) == 1 and runs[0].start != "boot"
    none, one, same, other = (run.output for run in runs)
    assert one == same != other and none not in (one, other)
    assert int(none.split()[-1]) + 1000 < int(one.split()[-1])
    with pytest.raises(LabError, match="--stall 1000: only virtual time has it"):
        machine.check(Options(stall=1000))


def test_priorities_begin_with_the_run(pytestconfig: pytest.Config, lab_run: LabRun) -> None:
    """From the same state; another seed or another number of changes is another run, the same one is to the bit."""
    if pytestconfig.getoption("--kernel") == "kcsan":
        pytest.skip("KCSAN waits for CPUs that are held, so that kernel takes no priorities")
    command = "for i in 1 2 3 4; do (seq 2000 | sort -rn | sha256sum; echo $i ${EPOCHREALTIME/./}) & done; wait"
    runs = [lab_run(command, clock="virtual", cpus=2, module=False, profile="none", schedule=schedule, changes=changes)
            for schedule, changes in ((0, 0), (1, 0), (1, 0), (2, 0), (1, 3))]
    assert all(run.status == 0 for run in runs)
    assert len({run.start for run in runs}) == 1 and runs[0].start != "boot"
    none, one, same, other, changed = (run.output for run in runs)
    assert one == same and len({none, one, other, changed}) == 4


def test_the_console_begins_with_the_boot(lab_run: LabRun) -> None:
    result = lab_run("dmesg | tail -n 1", clock="virtual", cpus=2, profile="none", module=False)
    assert result.console.index("device-mapper") < result.console.index("lab: run")

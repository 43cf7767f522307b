# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtual time, shown by programs on the bare machine (vtime/): they are all the firmware there is.

The emulator comes from MTFTL_QEMU, or else from $MTFTL_BUILD/qemu or build/qemu.
"""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("MTFTL_BUILD", HERE.parents[1] / "build"))
QEMU = os.environ.get("MTFTL_QEMU", str(BUILD / "qemu/qemu-system-x86_64"))
LOCKSTEP = "shift=0,sleep=off,quantum={}"
Lines = dict[str, list[int]]


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """Builds vtime/NAME.c into a firmware image."""
    folder = tmp_path_factory.mktemp("vtime")

    def make(name: str, **defines: int) -> Path:
        source = HERE / "vtime"
        image = folder / "-".join([name, *(f"{k}{v}" for k, v in defines.items())])
        if not image.exists():
            elf = image.with_suffix(".elf")
            subprocess.run(["gcc", "-m32", "-O2", "-ffreestanding", "-fno-pic", "-fno-stack-protector",
                            "-fcf-protection=none", "-mno-sse", "-mno-mmx", "-nostdlib", "-static", "-Wall", "-Wextra",
                            "-Werror", f"-Wl,-T,{source}/guest.ld,--build-id=none,-z,noexecstack",
                            *(f"-D{k}={v}" for k, v in defines.items()), "-o", elf,
                            source / "start.S", source / "guest.c", source / f"{name}.c"], check=True)
            subprocess.run(["objcopy", "-O", "binary", "-j", ".text", "-j", ".reset", "--gap-fill", "0xf4", elf, image],
                           check=True)
        return image

    return make


def command(image: Path, icount: str | None, cpus: int, console: Path) -> list[str]:
    return [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35,smm=off", "-accel", "tcg",
            "-cpu", "qemu64", "-global", "apic-common.vapic=off", "-smp", str(cpus), "-m", "64M", *(["-icount", icount] if icount else []),
            "-bios", str(image), "-chardev", f"file,id=out,path={console}", "-device", "isa-debugcon,chardev=out",
            "-device", "isa-debug-exit,iobase=0xf4,iosize=4"]


def run(image: Path, icount: str | None, cpus: int, console: Path) -> str:
    done = subprocess.run(command(image, icount, cpus, console), timeout=120, capture_output=True, text=True)
    assert done.returncode == 1 and not done.stderr, done.stderr
    return console.read_text()


def parsed(text: str) -> Lines:
    return {words[0]: [int(x) for x in words[1:]] for words in (line.split() for line in text.splitlines())}


def refused(icount: str) -> str:
    """The one line with which QEMU refuses these options."""
    done = subprocess.run([QEMU, "-M", "none", "-display", "none", "-icount", icount], timeout=20,
                          capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.rsplit("icount: ", 1)[1].strip()


@pytest.mark.parametrize("icount, why", [
    ("quantum=100", "quantum needs a fixed shift"),
    ("sleep=off,quantum=100", "quantum needs a fixed shift"),
    ("shift=auto,sleep=off,quantum=100", "quantum needs a fixed shift"),
    ("shift=0,quantum=100", "quantum needs sleep=off"),
    ("shift=0,sleep=on,quantum=100", "quantum needs sleep=off"),
    ("shift=0,sleep=off,quantum=0", "quantum must be a number from 1 to 1000000, not '0'"),
    ("shift=0,sleep=off,quantum=-1", "quantum must be a number from 1 to 1000000, not '-1'"),
    ("shift=0,sleep=off,quantum=1000001", "quantum must be a number from 1 to 1000000, not '1000001'"),
    ("shift=0,sleep=off,quantum=fast", "quantum must be a number from 1 to 1000000, not 'fast'"),
    ("shift=0,sleep=off,quantum=", "quantum must be a number from 1 to 1000000, not ''"),
    ("shift=0,sleep=off,speed=4", "speed needs quantum"),
    ("shift=0,sleep=off,quantum=100,speed=0", "speed must be a number from 1 to 100, not '0'"),
    ("shift=1,sleep=off,quantum=100,speed=2", "speed needs shift=0"),
    ("shift=0,sleep=off,quantum=100,rr=record,rrfile=/dev/null", "quantum and rr are incompatible"),
])
def test_bad_options(icount, why):
    assert refused(icount) == why


@pytest.mark.parametrize("quantum", [1, 100, 1000, 100000])
@pytest.mark.parametrize("cpus", [1, 2, 4, 8, 16])
def test_independent_loops_scale(program, tmp_path, cpus, quantum):
    turns = 20000 if quantum == 1 else 1000000
    lines = parsed(run(program("loops", TURNS=turns), LOCKSTEP.format(quantum), cpus, tmp_path / "out"))
    took = max(lines["ended"]) - min(lines["begun"])
    assert len(lines["ended"]) == cpus
    assert 2 * turns / took >= 0.97
    assert all(end - begin == 2 * turns + 3 for begin, end in zip(lines["begun"], lines["ended"]))


def test_without_quantum_the_cpus_share_one_clock(program, tmp_path):
    lines = parsed(run(program("loops", TURNS=1000000), "shift=0,sleep=off", 4, tmp_path / "out"))
    assert max(lines["ended"]) - min(lines["begun"]) > 4 * 1900000


def test_without_icount_it_still_runs(program, tmp_path):
    assert len(parsed(run(program("loops", TURNS=1000000), None, 4, tmp_path / "out"))["ended"]) == 4


def test_speed_and_shift(program, tmp_path):
    image = program("loops", TURNS=1000000)
    for icount, instructions_per_ns in (("shift=0,sleep=off,quantum=1000,speed=4", 4),
                                        ("shift=0,sleep=off,quantum=1000,speed=3", 3),
                                        ("shift=2,sleep=off,quantum=1000", 1 / 4)):
        lines = parsed(run(image, icount, 4, tmp_path / "out"))
        for begin, end in zip(lines["begun"], lines["ended"]):
            assert abs((end - begin) * instructions_per_ns - 2000003) <= 4

# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of a disk: on the host, through the registers of a drive, and in a guest in virtual time."""

import configparser
import json
import math
import subprocess
from pathlib import Path

import pytest
from bare import DATA, PROFILES, READ, Driver, device, driver
from shared import DISK, HERE, LOCKSTEP, MODEL, NVME, compile_c

KIB, MIB = 1024, 1024 * 1024
BLOCK = 4096
BANDS = 16
IND_NS, PAGE = 8, DATA + 0x10000            # Identify: what all command sets share; where it goes


def test_model(tmp_path: Path) -> None:
    """Closed forms to the nanosecond, and cuts, on the host, under the sanitizers."""
    program = compile_c(tmp_path / "test_disk", "-fsanitize=address,undefined", f"-I{NVME}", HERE / "test_disk.c",
                        *sorted(MODEL.glob("*.c")), "-lcmocka")
    done = subprocess.run([program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def told(drive: Driver) -> tuple[int, int, int]:
    """The version of NVMe, and NSFEAT and NSTAT of the namespace."""
    assert drive.admin(6, nsid=1, prp=PAGE, cdw10=IND_NS)[0] == 0
    page = drive.load(PAGE, 16)
    return drive.reg(0x08), page[0], page[14]


def test_only_a_disk_rotates(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    with driver(emulator_binary, bios, *device(tmp_path / "flash")) as drive:
        assert told(drive) == (0x10400, 0, 1)
    with driver(emulator_binary, bios, *device(tmp_path / "disk", **DISK)) as drive:
        assert told(drive) == (0x20000, 0x10, 1)
        assert "error" in drive.set("fault", "slow-die 0 200")


def test_the_same_block_comes_once_a_turn(emulator_binary: Path, bios: Path, tmp_path: Path) -> None:
    with driver(emulator_binary, bios, *device(tmp_path / "disk", **DISK)) as drive:
        assert drive.write(0, 2, fua=1) == 0
        for _ in range(2):
            drive.submit(1, READ, nsid=1, prp=DATA, cdw10=0)
        step, ends = 10_000, []
        for i in range(2000):
            ends += [i * step for _ in drive.ended(1)]
            drive.step(step)
        assert len(ends) == 2 and ends[0] <= 8_000_000 + step
        assert abs(ends[1] - ends[0] - 8_000_000) <= step


# In a guest. The disk of the profile, on 1 GiB.

SIZE = 512 * MIB
SMALLER = {"flash.size": "512M", "zoned.zone_size": "16M", "zoned.zone_capacity": "16M", "zoned.max_open": "32"}
JOBS = {"outer": "rw=read bs=1m size=32m", "inner": "rw=read bs=1m offset=480m size=32m",
        "random": "rw=randread norandommap bs=4k size=512m number_ios=300",
        "deep": "rw=randread norandommap bs=4k size=512m number_ios=1000 ioengine=io_uring iodepth=32"}
SCRIPT = r"""
set -e
cat /sys/block/nvme0n1/queue/rotational
dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=512 oflag=direct status=none
nvme flush /dev/nvme0 --namespace-id=1
fio --output=all.json --output-format=json jobs
"""


def job_file() -> str:
    """Jobs of fio, one after the other."""
    return "\n".join(["[global]", "filename=/dev/nvme0n1", "direct=1", "stonewall", "randseed=1",
                      *(line for name, words in JOBS.items() for line in (f"[{name}]", *words.split()))])


def profile() -> dict[str, int]:
    """Its properties that are numbers, in bytes and ns."""
    parser = configparser.ConfigParser()
    parser.read(PROFILES / "smr.cfg")
    texts = {key.strip(): value.strip('"') for key, value in parser['device "ns0"'].items()}
    unit = {"K": KIB, "M": MIB, "G": KIB * MIB}
    return {key.removeprefix("flash."): int(text.rstrip("KMG")) * unit.get(text[-1], 1)
            for key, text in texts.items() if text[0].isdigit()}


def tracks(p: dict[str, int]) -> list[int]:
    """The blocks on each track, from the outermost on."""
    outer, inner = p["track"] // BLOCK, p["inner_track"] // BLOCK
    per_track = [outer - (outer - inner) * i // (BANDS - 1) for i in range(BANDS)]
    band = math.ceil(SIZE / BLOCK / sum(per_track))
    return [n for n in per_track for _ in range(band)]


def in_order(p: dict[str, int], first: int, end: int) -> float:
    """From where a block begins to where another one does, in bytes, on a head that reads all between."""
    at, ns = 0.0, 0.0
    for n in (n * BLOCK for n in tracks(p)):
        ns += max(0.0, min(end, at + n) - max(first, at)) / n * p["turn_ns"] + (first < at < end) * p["skew_ns"]
        at += n
    return ns


def mean_seek(p: dict[str, int]) -> float:
    """Between two blocks at random."""
    every = tracks(p)
    used, left = [], SIZE // BLOCK
    for n in every:
        used.append(min(n, left))
        left -= used[-1]
    total = 0.0
    for way in range(1, len(every)):
        part = (way - 1) / (len(every) - 2)
        ns = p["seek_track_ns"] + p["seek_sqrt_ns"] * part ** 0.5 + p["seek_linear_ns"] * part
        total += 2 * ns * sum(a * b for a, b in zip(used, used[way:], strict=False))
    return total / (SIZE // BLOCK) ** 2


def test_a_guest_sees_the_closed_forms(lab_run, tmp_path: Path) -> None:
    """In order at the rate of the media, at random by seek and half a turn, and faster with more in flight."""
    jobs = tmp_path / "jobs"
    jobs.write_text(job_file())
    result = lab_run(SCRIPT, kernel="current", profile="smr", device=SMALLER, push=[jobs], pull=["all.json"],
                     **LOCKSTEP)
    assert result.status == 0, result.output
    assert result.output.splitlines()[0].strip() == "1"
    p, data = profile(), result.files["all.json"]
    found = {job["jobname"]: job["read"] for job in json.loads(data[data.index(b"{"):])["jobs"]}
    # All but the first read, which may seek: the gap between two is hidden behind what the head reads on.
    for name, first in (("outer", 0), ("inner", 480 * MIB)):
        lat, count = found[name]["lat_ns"], 31
        assert (lat["mean"] * (count + 1) - lat["max"]) / count == pytest.approx(
            in_order(p, first + MIB, first + (count + 1) * MIB) / count, rel=0.03)
    once = mean_seek(p) + p["turn_ns"] / 2 + p["read_cmd_ns"]
    assert found["random"]["lat_ns"]["mean"] == pytest.approx(once, rel=0.05)
    assert found["deep"]["iops"] > 1.4e9 / once

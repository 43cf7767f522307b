# SPDX-License-Identifier: GPL-2.0
"""lab replay: the guest's program on a file of the host, what is told of its rows, and a trace on the target."""

import csv
import io
import json
import os
import subprocess
from pathlib import Path

import pytest
from mtlab.build import guest
from mtlab.cmd import traced
from mtlab.util.base import ROOT

LAB = ROOT / "scripts/lab"
MIB = 1 << 20


@pytest.fixture
def device(tmp_path: Path) -> Path:
    path = tmp_path / "device"
    path.write_bytes(os.urandom(MIB))
    return path


def replayed(device: Path, depth: int, trace: str) -> list[dict[str, str]]:
    done = subprocess.run([guest.program("guest-replay"), device, str(depth)], input=trace, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_rows(device: Path) -> None:
    """Whole blocks, inside the device; writes are written, reads write nothing, none comes before its time."""
    before = device.read_bytes()
    rows = replayed(device, 1, f"0 r 0 4096\n1000 w 5000 100\n2000 t 0 4096\n20000000 W {MIB + 8192} 4096\n"
                               f"20000000 f 0 0\n21000000 r {MIB - 4096} 8192\n")
    assert [(row["n"], row["op"], row["offset"], row["bytes"]) for row in rows] == [
        ("1", "r", "0", "4096"), ("2", "w", "4096", "4096"), ("4", "W", "8192", "4096"), ("5", "f", "0", "0"),
        ("6", "r", f"{MIB - 8192}", "8192")]
    assert all(row["status"] == "0" and int(row["total_ns"]) >= int(row["late_ns"]) >= 0 for row in rows)
    after = device.read_bytes()
    assert after[4096:12288] == b"\x5a" * 8192
    assert after[:4096] == before[:4096] and after[12288:] == before[12288:]


@pytest.mark.parametrize("depth", [1, 8])
def test_depth(device: Path, depth: int) -> None:
    """All requests end, and at most so many are under way: a request is submitted when one before has ended."""
    rows = replayed(device, depth, "".join(f"0 r {n * 4096} 4096\n" for n in range(200)))
    assert sorted(int(row["n"]) for row in rows) == list(range(1, 201))
    for place, row in enumerate(rows):
        assert int(row["n"]) <= place + depth
        assert int(row["late_ns"]) >= max((int(one["late_ns"]) for one in rows[:max(place - depth, 0)]), default=0)


def test_told() -> None:
    rows = [{"op": "r", "total_ns": f"{n}000", "late_ns": "0", "status": "0"} for n in range(1, 101)]
    rows += [{"op": "w", "total_ns": "5000", "late_ns": "70000", "status": "-5"}]
    found = traced.told(rows)
    assert (found["requests"], found["errors"], found["late_us"]) == (101, 1, 70)
    assert found["r"] == {"count": 100, "mean_us": 50.5, "p50_us": 50, "p90_us": 90, "p99_us": 99, "p99.9_us": 100,
                          "p100_us": 100}


def test_on_the_target(emulator_binary: Path, tmp_path: Path) -> None:
    """In virtual time: a trace of MSR's format, and no request is lost or late without a reason."""
    trace = tmp_path / "trace.csv"
    trace.write_text("".join(f"{128166372003061629 + 10000 * n},usr,0,{'Read' if n % 3 else 'Write'},{n % 50 * 8192},"
                             f"4096,1\n" for n in range(200)))
    rows = tmp_path / "rows.csv"
    done = subprocess.run([LAB, "replay", "--clock", "virtual", "--rows", rows, trace], capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout[done.stdout.index("{\n"):])
    assert told["requests"] == 200 and not told["errors"] and told["late_us"] < 1000
    with open(rows, newline="") as lines:
        found = list(csv.DictReader(lines))
    assert sorted(int(row["n"]) for row in found) == list(range(1, 201))
    assert all(int(row["time_ns"]) == (int(row["n"]) - 1) * 1_000_000 for row in found)

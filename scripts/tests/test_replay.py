# SPDX-License-Identifier: GPL-2.0
"""A trace on the model of flash: closed forms of a request's parts, all personalities, tables, errors."""

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mtlab.run import replay
from mtlab.run.replay import COLUMNS, read_rows
from mtlab.util.base import ROOT, LabError

DRIVE = ("channels=2", "dies=2", "blocks=32", "block_pages=32", "planes=2", "read_ns=50000", "program_ns=600000",
         "erase_ns=3000000", "channel_rate=400000000", "link_rate=4096000000", "service_ns=1000", "read_cmd_ns=5000",
         "write_cmd_ns=3000", "gc_begin=95", "spare_permille=250")
PARTS = [name for name in COLUMNS if name.endswith("_ns") and name not in ("time_ns", "total_ns")]
HEADER = "Timestamp,Response,IOType,LUN,Offset,Size\n"


def _run(folder: Path, requests: Sequence[tuple[int, str, int, int]], *words: str) -> tuple[Any, list[dict[str, Any]]]:
    """A trace of microseconds, kinds, blocks and their numbers, in the format of SNIA."""
    trace, rows = folder / "trace.csv", folder / "out.csv"
    trace.write_text(HEADER + "".join(f"{1 + us / 10**6:.6f},0,{kind},0,{4096 * at},{4096 * nr}\n"
                                      for us, kind, at, nr in requests))
    found = replay.run([f"trace={trace}", f"rows={rows}", *DRIVE, *words], folder)
    table = read_rows(rows)
    assert list(table[0]) == list(COLUMNS)
    for row in table:
        assert sum(row[name] for name in PARTS) == row["total_ns"] and min(row[name] for name in PARTS) >= 0, row
    return found, table


def _load(number: int, blocks: int) -> list[tuple[int, str, int, int]]:
    draw = random.Random(1)
    return [(500 * n, draw.choice("RWW"), draw.randrange(blocks), draw.choice((1, 1, 4, 32))) for n in range(number)]


def test_parts_of_requests_that_meet(tmp_path: Path) -> None:
    """Two reads of one die, a buffered write: 4 KiB take 1 us of the link, 10.24 us of a channel."""
    found, rows = _run(tmp_path, [(0, "R", 0, 1), (0, "R", 0, 1), (1000, "W", 0, 1)], "fill=100")
    parts = ("service_ns", "link_ns", "queue_ns", "cell_ns", "transfer_ns", "gc_ns")
    assert [[row[name] for name in parts] for row in rows] == [
        [6000, 1000, 0, 50000, 10240, 0], [7000, 1000, 59240, 50000, 10240, 0], [4000, 1000, 0, 0, 0, 0]]
    assert [row["time_ns"] for row in rows] == [0, 0, 1_000_000]
    assert found["reads"]["count"] == 2 and found["reads"]["p100_us"] == 127.48


def test_a_write_through_waits_for_its_program(tmp_path: Path) -> None:
    _found, rows = _run(tmp_path, [(0, "W", 0, 1)], "buffer=0")
    assert (rows[0]["cell_ns"], rows[0]["transfer_ns"], rows[0]["queue_ns"]) == (600000, 20480, 0)


def test_collection_shows(tmp_path: Path) -> None:
    """Random writes on a full, aged drive wait for it; on a fresh one nothing does."""
    load = [(200 * n, "W", 7 * n % 3000, 1) for n in range(3000)]
    aged, slow = _run(tmp_path, load, "fill=100", "age=100")
    fresh, fast = _run(tmp_path, load)
    assert aged["moved"] and not fresh["moved"]
    assert sum(row["gc_ns"] for row in slow) > 0 == sum(row["gc_ns"] for row in fast)


@pytest.mark.parametrize("words", [
    ("mapping=page",), ("mapping=dftl", "map_pages=3"), ("mapping=fast", "zone_dies=1", "log_blocks=16"),
    ("suspend=1", "read_first=1", "cache=1"), ("booked=1",), ("personality=zns", "zone_dies=2"),
    ("personality=ocssd",)], ids=lambda words: str(words[0]))
def test_all_personalities(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Parts add up in each row, each request has one, and the same words give the same table."""
    load = _load(800, 3000)
    found, rows = _run(tmp_path, load, "fill=90", *words)
    assert len([row for row in rows if row["op"] != "reset"]) == 800 == found["requests"] - found["resets"]
    assert {row["status"] for row in rows} <= {"ok", "overtaken"}
    assert _run(tmp_path, load, "fill=90", *words) == (found, rows)


def test_a_zone_is_reset_before_it_is_written_again(tmp_path: Path) -> None:
    """A zone has 256 blocks here: two are filled, the third write that does not fit begins with a reset."""
    zone = 32 * 2 * 4
    found, rows = _run(tmp_path, [(0, "W", 0, zone), (10**5, "W", zone, zone), (2 * 10**5, "W", 8, 8)],
                       "personality=zns")
    assert [(row["n"], row["op"]) for row in rows] == [(1, "write"), (2, "write"), (3, "write"), (3, "reset")]
    assert found["resets"] == 1 and rows[3]["cell_ns"] == 3_000_000


def test_chunks_are_striped_over_dies(tmp_path: Path) -> None:
    """Four units of 8 KiB are read from four dies at once: two transfers of 20.48 us a channel."""
    _found, rows = _run(tmp_path, [(0, "R", 0, 8)], "personality=ocssd", "fill=100", "service_ns=0", "link_rate=0")
    assert rows[0]["total_ns"] == 5000 + 50000 + 2 * 20480


def test_depth_bounds_what_is_under_way(tmp_path: Path) -> None:
    found, rows = _run(tmp_path, [(0, "R", 0, 1)] * 3, "fill=100", "depth=1")
    assert found["waited_for_depth"] == 2 and [row["host_ns"] for row in rows] == [0, 67240, 134480]


def test_addresses_beyond_the_drive(tmp_path: Path) -> None:
    found, rows = _run(tmp_path, [(0, "R", 10**9, 1)])
    assert found["wrapped"] == 1 and rows[0]["offset"] < found["logical_bytes"]


def test_parquet(tmp_path: Path) -> None:
    """Where pyarrow is, the same table; where it is not, the error says so before anything runs."""
    trace = tmp_path / "trace.csv"
    trace.write_text(HEADER + "1.0,0,R,0,0,4096\n")
    words = [f"trace={trace}", f"rows={tmp_path}/out.parquet", *DRIVE]
    if not (arrow := replay.pyarrow()):
        with pytest.raises(LabError, match=r"needs python3-pyarrow.*expected rows=FILE.csv"):
            replay.run(words, tmp_path)
        return
    replay.run(words, tmp_path)
    assert arrow.parquet.read_table(tmp_path / "out.parquet").to_pylist() == read_rows(tmp_path / "rows.csv")


def test_the_command(tmp_path: Path) -> None:
    """It prints JSON; a wrong line is named, and its exit status is that of a wrong call."""
    trace = tmp_path / "trace.csv"
    trace.write_text(HEADER + "1.0,0,R,0,0,4096\n")
    words = [str(ROOT / "scripts/lab"), "firmware", f"trace={trace}", *DRIVE]
    done = subprocess.run(words, capture_output=True, text=True)
    assert not done.returncode and json.loads(done.stdout)["requests"] == 1, done.stderr
    trace.write_text(HEADER + "1.0,0,R,0,0,4096\n1.0,0,R,0,4096\n")
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 240 and f"{trace}:3: 5 fields, expected Timestamp" in done.stderr


@pytest.mark.parametrize(("word", "said"), [("depth=0", "depth of at least 1"), ("personality=smr", "no personality"),
                                            ("speed=fast", "has no number"), ("block=3", "names nothing"),
                                            ("fill=101", "fill of at most 100")])
def test_wrong_words(tmp_path: Path, word: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        _run(tmp_path, [(0, "R", 0, 1)], word)

# SPDX-License-Identifier: GPL-2.0
"""Traces of others as requests: each format, its oddities, and lines that are wrong."""

import gzip
from pathlib import Path

import pytest
from mtlab.run.blocktrace import PIECE, REGIONS, Request, lines, read
from mtlab.util.base import LabError

SIZE = 1 << 30
MSR = """128166372003061629,usr,0,Read,7014609920,24576,41286
128166372016382155,usr,0,Write,1317441536,8192,1963
"""
SNIA = """Timestamp,Response,IOType,LUN,Offset,Size
1456095145.133076000,0.000806000,R,0,899056122368,131072
1456095145.133077000,0.000806000,,0,0,0
1456095145.134000000,0.000100000,W,4,512,4096
"""
BLKPARSE = """  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000000500   697  D   W 223490 + 8 [kjournald]
  8,0    3        3     0.000100000   697  C   W 223490 + 8 [0]
  8,0    1        1     0.001000000     0  D  FN [kworker/1:1H]
  8,0    1        2     0.002000000     0  D FWFS 16 + 8 [jbd2/sda1-8]
  8,0    1        3     0.003000000     0  D  RA 1024 + 256 [cat]
  8,0    1        4     0.004000000     0  D  DS 2048 + 2048 [fstrim]
  8,0    1        5     0.005000000     0  D  ZR 524288 + 524288 [blkzone]
  8,0    1        6     0.006000000     0  m   N cfq42 insert_request

CPU0 (8,0):
 Reads Queued:           1,      128KiB\t Writes Queued:           2,       8KiB
Throughput (R/W): 0KiB/s / 0KiB/s
Events (8,0): 9 entries
Skips: 0 forward (0 -   0.0%)
"""


def _read(folder: Path, text: str, kind: str = "", **words: object) -> list[Request]:
    path = folder / "trace"
    path.write_text(text)
    return read(path, kind, **{"size": SIZE, **words})  # type: ignore[arg-type]


def test_msr(tmp_path: Path) -> None:
    """File times are units of 100 ns."""
    assert _read(tmp_path, MSR) == [Request(0, "r", 7014609920, 24576), Request(1332052600, "w", 1317441536, 8192)]


def test_snia(tmp_path: Path) -> None:
    """Requests of no type are passed over; nine digits are exact."""
    assert _read(tmp_path, SNIA) == [Request(0, "r", 899056122368, 131072), Request(924000, "w", 512, 4096)]


def test_blkparse(tmp_path: Path) -> None:
    """What was issued to the driver: flushes, FUA, trims, zones; the summary is none of it."""
    assert [(one.ns, one.op, one.offset, one.bytes) for one in _read(tmp_path, BLKPARSE)] == [
        (0, "w", 223490 * 512, 4096), (999500, "f", 0, 0), (1999500, "f", 0, 0), (1999500, "W", 8192, 4096),
        (2999500, "r", 1024 * 512, 131072), (3999500, "t", 1 << 20, 1 << 20),
        (4999500, "z", 524288 * 512, 524288 * 512)]


def test_cachelib_is_a_log_of_regions(tmp_path: Path) -> None:
    """An object is read from where its region was written, until the region makes way."""
    size = REGIONS * PIECE
    text = "key,op,size,op_count,key_size,ttl\n" + "".join(f"k{n},SET,{PIECE - 4},1,4,0\n" for n in range(3))
    text += "k1,GET,0,2,4,0\nk1,DELETE,0,1,4,0\nk1,GET,100,1,4,0\nk2,GET,100,1,4,0\nk9,GET,100,1,4,0\n"
    found = _read(tmp_path, text, size=size, rate=1000)
    assert [(one.op, one.offset, one.bytes) for one in found] == [
        ("w", 0, PIECE), ("w", PIECE, PIECE), ("r", PIECE, 4), ("r", PIECE, 4)]
    assert [one.ns for one in found] == [0, 10**6, 2 * 10**6, 3 * 10**6]
    full = text + "".join(f"n{n},SET,{PIECE - 4},1,4,0\n" for n in range(REGIONS)) + "k0,GET,100,1,4,0\n"
    assert _read(tmp_path, full, size=size)[-1].op == "w"


def test_cachelib_spreads_the_requests_of_a_second(tmp_path: Path) -> None:
    text = "op_time,key,key_size,op,op_count,size,cache_hits,ttl\n"
    text += "".join(f"{7 + n // 4},k{n},1,SET,1,{PIECE - 1},0,0\n" for n in range(8))
    assert [one.ns for one in _read(tmp_path, text, size=REGIONS * PIECE)] == [n * 250_000_000 for n in range(7)]


def test_no_room_for_a_cache(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="expected at least"):
        _read(tmp_path, "k,SET,10\n", "cachelib", size=PIECE)


def test_compressed_and_out_of_order(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(gzip.compress("".join(reversed(MSR.splitlines(keepends=True))).encode()))
    assert read(path, size=SIZE) == _read(tmp_path, MSR)


def test_faster_and_shorter(tmp_path: Path) -> None:
    assert [one.ns for one in _read(tmp_path, MSR, speed=2)] == [0, 666026300]
    assert len(_read(tmp_path, MSR, most=1)) == 1
    with pytest.raises(LabError, match="more than 0"):
        _read(tmp_path, MSR, speed=0)


def test_lines_for_the_programs(tmp_path: Path) -> None:
    assert lines(_read(tmp_path, MSR)) == "0 r 7014609920 24576\n1332052600 w 1317441536 8192\n"


@pytest.mark.parametrize(("kind", "text", "line", "said"), [
    ("msr", MSR + "128,usr,0,Read,7\n", 3, "5 fields, expected Timestamp,Hostname"),
    ("msr", MSR + "128,usr,0,Erase,7,8,9\n", 3, "type 'Erase', expected Read or Write"),
    ("msr", MSR + "\n128,usr,0,Read,-7,8,9\n", 4, "offset '-7', expected a number"),
    ("msr", "soon,usr,0,Read,7,8,9\n", 1, "time stamp 'soon'"),
    ("snia", SNIA + "1456095145.2,0.1,X,0,1,2\n", 5, "IOType 'X', expected R, W or nothing"),
    ("snia", SNIA + "later,0.1,W,0,1,2\n", 5, "time stamp 'later', expected seconds"),
    ("snia", SNIA + "nan,0.1,W,0,1,2\n", 5, "time stamp 'nan', expected seconds"),
    ("blkparse", "  8,0 3 1 0.0 697 D W 223490\n", 1, "request W without SECTOR"),
    ("blkparse", BLKPARSE + "  8,0    3        1     noon   697  D   W 223490 + 8 [x]\n", 16, "expected DEVICE CPU"),
    ("cachelib", "key,op\n", 1, "no column size"),
    ("cachelib", "key,op,size\nk,GET,1\nk,INCR,1\n", 3, "op 'INCR', expected GET"),
    ("cachelib", "key,op,size\nk,GET,large\n", 2, "size 'large', expected a number"),
])
def test_wrong_lines_are_named(tmp_path: Path, kind: str, text: str, line: int, said: str) -> None:
    with pytest.raises(LabError, match=rf"/trace:{line}: {said}"):
        _read(tmp_path, text, kind)


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is no file"):
        read(tmp_path / "none", size=SIZE)
    with pytest.raises(LabError, match="no format 'spc': there are msr, snia, blkparse, cachelib"):
        _read(tmp_path, MSR, "spc")
    with pytest.raises(LabError, match="trace:1: of no format that is known, expected format=msr"):
        _read(tmp_path, "hello\n")
    with pytest.raises(LabError, match="no request in it"):
        _read(tmp_path, "Timestamp,Response,IOType,LUN,Offset,Size\n")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(MSR.encode() * 1000)[:-20])
    with pytest.raises(LabError, match=r"cut.gz:\d+: cannot be read"):
        read(cut, "msr", size=SIZE)

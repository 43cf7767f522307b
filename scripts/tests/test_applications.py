# SPDX-License-Identifier: GPL-2.0
"""What the experiments on applications read from what their guests bring out."""

import json
import struct

import pytest
from mtlab.exp import applications, counters

ROCKS = """\
Read rate: 0 ops/second
fillrandom   :      17.412 micros/op 56800 ops/sec 0.352 seconds 20000 operations;   44.2 MB/s
Microseconds per write:
Count: 20000 Average: 68.7335  StdDev: 500.10
Min: 7  Median: 14.4523  Max: 23400
Percentiles: P50: 14.45 P75: 18.91 P99: 74.66 P99.9: 3900.00 P99.99: 23400.00
"""


def _log(programmed: int) -> bytes:
    page = bytearray(counters.COUNTERS)
    struct.pack_into("<HH", page, 6, counters.COUNTERS, 16)
    struct.pack_into("<II", page, 12, 1, 1)
    struct.pack_into("<Q", page, 136, programmed)
    return bytes(page)


def _files(app: str, out: str, state: str = "0") -> dict[str, bytes]:
    looks = "".join(f"look\n{cpus}" for cpus in ("cpu0 0 0 9 9 9 9 1000 5 5\ncpu1 0 0 9 9 9 9 2000 5 5\n",
                                                 "cpu0 0 0 9 9 9 9 400001000 5 5\ncpu1 0 0 9 9 9 9 600002000 5 5\n"))
    return {f"{app}.out": out.encode(), f"{app}.state": state.encode(), f"{app}.cpus": looks.encode(),
            f"{app}.log": _log(1000) + _log(1000 + 816 * 60000), "window": b"500\n", "complaints": b"0\n"}


def test_db_bench() -> None:
    found, every = applications.samples({"mtftl-xfs": _files("rocksdb-fill", ROCKS)})
    assert found == {"subject": "mtftl-xfs", "app": "rocksdb-fill", "failed": 0, "count": 20000, "rate": 56800,
                     "mean_us": 68.7335, "max_us": 23400, "p99_us": 74.66, "p99.9_us": 3900, "programmed": 3,
                     "instructions": 50000}
    assert every["complaints"] == 0
    with pytest.raises(ValueError, match="db_bench"):
        applications.samples({"btrfs": _files("rocksdb-fill", "Segmentation fault\n")})


def test_sysbench() -> None:
    """A percentile is the bar in which it lies."""
    out = ("       value  ------------- distribution ------------- count\n"
           "       1.000 |**************************************** 1979\n"
           "       2.000 |                                         1\n"
           f"       8.000 |*{' ' * 39} 20\n\n"
           "    transactions:                        2000   (999.50 per sec.)\n"
           "Latency (ms):\n         min:       0.9\n         avg:                                    1.07\n"
           "         max:                                    8.13\n")
    found, _ = applications.samples({"mtftl-xfs": _files("mariadb-write", out)})
    assert (found["count"], found["rate"], found["mean_us"], found["max_us"]) == (2000, 999.5, 1070, 8130)
    assert found["p99_us"] == 2000 and "p99.9_us" not in found and "programmed" not in found
    with pytest.raises(ValueError, match="sysbench"):
        applications.samples({"btrfs": _files("mariadb-write", "FATAL: no connection\n")})


def test_a_percentile_needs_samples_beyond_it() -> None:
    took = "".join(f"{us}000\n" for us in range(1, 2001))
    found, _ = applications.samples({"btrfs": _files("sqlite-wal", took)})
    assert (found["count"], found["rate"], found["p99_us"], found["max_us"]) == (2000, 4000, 1980, 2000)
    assert "p99.9_us" not in found
    found, _ = applications.samples({"btrfs": _files("sqlite-wal", took.removesuffix("2000000\n"))})
    assert "p99_us" not in found


def test_how_far_the_ageing_came_is_of_all_jobs() -> None:
    age = {"jobs": [{"write": {"io_bytes": applications.BALLAST_MIB << 18}}] * 4}
    files = {"complaints": b"0\n", "kept/age.json": b"fio: words\n" + json.dumps(age).encode()}
    assert applications.samples({"btrfs": files}) == [
        {"subject": "btrfs", "app": "all", "complaints": 0, "overwritten": 1}]


def test_what_failed_counts_as_one_transaction() -> None:
    """Of ours. Beside peers that all failed there is no check, because it could not fail."""
    failed = applications.samples({"btrfs": _files("files", "", "124")})[:1]
    assert failed == [{"subject": "btrfs", "app": "files", "failed": 1}]
    ran = {"subject": "mtftl-ext4", "app": "files", "failed": 0, "rate": 400.0}
    assert applications.checks([*failed, ran], False) == []
    assert applications.table([*failed, ran])[1][2:4] == ["failed", "-"]
    (check,) = applications.checks([failed[0] | {"subject": "mtftl-ext4"}, ran | {"subject": "btrfs"}], False)
    assert check.measured == 1000 / applications.SIZES["MS"] / 400 and not check.passed


def test_the_quick_form_measures_something_of_everything() -> None:
    assert {*applications.QUICK_APPS} < {*applications.APPS} and {*applications.QUICK_LABELS} < {*applications.LABELS}
    for state in ("fresh", "aged"):
        left_out = {"fresh": set(), "aged": {applications.NOT_AGED}}[state]
        assert [run.name for run in applications.runs(state, False)] == [*filter(
            lambda name: name not in left_out, applications.LABELS)]
        assert all(bool(run.options.before) == (state == "aged") for run in applications.runs(state, True))

# SPDX-License-Identifier: GPL-2.0
"""What the experiment on files makes of what fio says, and on which drives it begins."""

import json
import struct

from mtlab.exp import counters
from mtlab.exp.experiments import load

FILES = load("files")


def _log(programmed: int) -> bytes:
    page = bytearray(counters.COUNTERS)
    struct.pack_into("<HH", page, 6, counters.COUNTERS, 16)
    struct.pack_into("<II", page, 12, 1, 1)
    struct.pack_into("<Q", page, 136, programmed)
    return bytes(page)


def _job(count: int, sync_us: int = 0) -> bytes:
    side = {"total_ios": count, "io_bytes": count * 4096, "runtime": 400,
            "clat_ns": {"mean": 1000, "max": 9000, "percentile": {"99.000000": 3000, "99.900000": 5000}}}
    sync = {"lat_ns": {"mean": 1000 * sync_us, "max": 2000 * sync_us, "percentile": {"99.000000": 1500 * sync_us}}}
    job = {"error": 0, "job options": {"numjobs": "1", "runtime": "400ms"}, "write": side, "sync": sync}
    return b"fio: a word before\n" + json.dumps({"jobs": [job]}).encode()


def _sample(what: str, job: bytes, state: bytes = b"0\n") -> dict[str, object]:
    files = {f"{what}.json": job, f"{what}.state": state, f"{what}.log": _log(1000) + _log(1000 + 8192 * 40000)}
    (found,) = FILES.samples({"mtftl-xfs": files})
    return found


def test_a_percentile_needs_requests_beyond_it() -> None:
    found = _sample("overwrite", _job(40000))
    assert (found["iops"], found["p99.9_us"], found["programmed"]) == (100000, 5, 2)
    assert "p99.9_us" not in _sample("overwrite", _job(19000)) and "p99_us" in _sample("overwrite", _job(19000))


def test_synced_jobs_tell_of_the_sync() -> None:
    """The write before it ends in memory."""
    found = _sample("append-4", _job(4000, sync_us=700))
    assert (found["mean_us"], found["max_us"], found["p99_us"]) == (700, 1400, 1050)


def test_what_failed_is_no_rate() -> None:
    failed = _sample("overwrite", b"", b"124\n")
    assert failed == {"subject": "mtftl-xfs", "what": "overwrite", "failed": 1}
    assert FILES.table([failed])[1][2:4] == ["failed", "-"]
    assert FILES.checks([failed, _sample("overwrite", _job(40000)) | {"subject": "zoned-xfs"}], False) == []


def test_drives_are_those_of_the_applications() -> None:
    """A drive is known by all that its guest was given: one more file there, and it would be aged again."""
    aged = {run.name: run.options for run in load("applications-aged").runs(False)}
    files = {run.name: run.options for run in FILES.runs(False)}
    assert {name: options for name, options in files.items() if options.before} == {
        name: aged[name] for name in files if name in aged}
    assert {name for name in files if name not in aged} == {"mtftl", "box"}

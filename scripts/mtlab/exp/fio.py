# SPDX-License-Identifier: GPL-2.0
"""fio jobs as text, and their JSON output or their logs as flat samples."""

import json
import math
from collections.abc import Mapping
from typing import Any

PERCENTILES = (50, 95, 99, 99.9)


def seed(number: int) -> str:
    """A seed of its own for each repetition of a run, in shell: those of the first are as numbered."""
    return f"$(({number} + 100 * seed))"


def command(output: str, **settings: object) -> str:
    """A fio command line: settings by their names (zonemode, numjobs, ...); True stands alone."""
    fixed = {"name": "job", "direct": 1, "group_reporting": True, "randseed": seed(42), "percentile_list":
             ":".join(map(str, PERCENTILES)), "output-format": "json", "output": output}
    words = [f"--{k.replace('_', '-') if k == 'output_format' else k}" + ("" if v is True else f"={v}")
             for k, v in {**fixed, **settings}.items()]
    return "fio " + " ".join(words)


def sample(data: bytes, direction: str, seconds: float = 0) -> dict[str, Any]:
    """IOPS, bytes a second and completion latencies in microseconds of one direction of one job.

    fio's time of several jobs ends with the last request of the last one, rounded up to a millisecond: so one
    straggler would slow all of them. If jobs run for a set time, only that time counts here, without the requests
    that ended after it: at most what each had in flight.
    """
    job = json.loads(data[data.index(b"{"):])["jobs"][0]
    if job["error"]:
        raise ValueError(f"fio reports error {job['error']}")
    side = job[direction]
    took = side["runtime"] / 1000
    if took < seconds:
        raise ValueError(f"fio ran for {took} s, expected {seconds} s")
    ios, latency = side["total_ios"], side["clat_ns"]
    rate = ios / took if took else 0
    if seconds:
        late = int(job["job options"].get("numjobs", 1)) * int(job["job options"].get("iodepth", 1))
        rate = max(ios / max(seconds, took - 0.001), (ios - late) / seconds)
    return {"ios": ios, "iops": round(rate, 3), "bytes_per_s": round(rate * side["io_bytes"] / ios, 3) if ios else 0,
            "mean_us": round(latency["mean"] / 1000, 3), "max_us": round(latency["max"] / 1000, 3),
            **{f"p{float(p):g}_us": round(ns / 1000, 3) for p, ns in latency.get("percentile", {}).items()}}


def seconds(data: bytes) -> float:
    """How long the job was told to run."""
    text = json.loads(data[data.index(b"{"):])["jobs"][0]["job options"]["runtime"]
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text)


def log(name: str) -> dict[str, object]:
    """Settings of a job whose requests logged() reads."""
    return {"write_lat_log": name, "disable_slat": 1, "disable_clat": 1}


def logged(files: Mapping[str, bytes], name: str, start: float, end: float, block: int) -> dict[str, Any]:
    """What sample() tells, of requests of one size that ended from start to end, in seconds since the jobs began.

    It is exact where many requests are in flight: fio's own sums take in what drains after the end.
    """
    rows = [line.split(b",") for log, data in files.items() if log.startswith(f"{name}_lat.")
            for line in data.splitlines()]
    took = sorted(int(row[1]) / 1000 for row in rows if 1000 * start <= int(row[0]) < 1000 * end)
    if not took:
        raise ValueError("no request ended in that time")
    return {"ios": len(took), "iops": round(len(took) / (end - start), 3),
            "bytes_per_s": round(len(took) * block / (end - start), 3),
            "mean_us": round(sum(took) / len(took), 3), "max_us": round(took[-1], 3),
            **{f"p{p:g}_us": round(took[math.ceil(p / 100 * len(took)) - 1], 3) for p in PERCENTILES}}

# SPDX-License-Identifier: GPL-2.0
"""`lab replay`: a trace in open loop on a device of a guest, with a row a request.

The trace's formats are those of `lab firmware trace=`. scripts/guest/guest-replay.c submits the requests.
"""

import argparse
import csv
import json
import math
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..build import guest
from ..run import accel, blocktrace, machine
from ..run.options import add_options, options_from
from ..run.replay import pyarrow, to_parquet
from ..util.base import LabError

DEVICE = "/dev/mapper/ftl"
SETUP = "mtftl format /dev/nvme0n1 && mtftl open /dev/nvme0n1 ftl"
DEPTH = 1024
SIZE = 1 << 30              # of a cache's log, unless --size says another one
PERCENTILES = (50, 90, 99, 99.9, 100)


def told(rows: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Latencies by operation, from when a request was due to its end, in us."""
    found: dict[str, Any] = {"requests": len(rows), "errors": sum(int(one["status"]) < 0 for one in rows),
                             "late_us": max((int(one["late_ns"]) for one in rows), default=0) / 1e3}
    for op in sorted({one["op"] for one in rows}):
        times = sorted(int(one["total_ns"]) for one in rows if one["op"] == op)
        found[op] = {"count": len(times), "mean_us": sum(times) / len(times) / 1e3,
                     **{f"p{p:g}_us": times[math.ceil(p / 100 * len(times)) - 1] / 1e3 for p in PERCENTILES}}
    return found


def command(device: str, setup: str, depth: int) -> str:
    """What the guest does."""
    return f"{{ {setup} ; }} >&2 && ./guest-replay {shlex.quote(device)} {depth} <trace >rows.csv"


def _replay(args: argparse.Namespace) -> int:
    options = options_from(args)
    parquet = args.rows is not None and args.rows.suffix == ".parquet"
    if parquet and not pyarrow():
        raise LabError(f"{args.rows}: python3-pyarrow is missing, expected a file that ends with .csv")
    requests = blocktrace.read(args.trace, args.format, size=args.size, speed=args.faster, rate=args.rate,
                               most=args.first)
    with tempfile.TemporaryDirectory(prefix="replay-") as name:
        trace = Path(name) / "trace"
        trace.write_text(blocktrace.lines(requests))
        options = replace(options, push=[*options.push, trace, guest.program("guest-replay")],
                          pull=[*options.pull, "rows.csv"])
        machine.check(options)
        result = machine.run(command(args.on, args.setup, args.depth), options,
                             accel=accel.choose() if options.clock == "wall" else "tcg")
        if result.status or "rows.csv" not in result.files:
            raise LabError(f"the replay ended with status {result.status}\n{result.output}")
        print(result.output, end="")
        rows = Path(name) / "rows.csv"
        rows.write_bytes(result.files["rows.csv"])
        if parquet:
            to_parquet(rows, args.rows)
        elif args.rows:
            args.rows.write_bytes(rows.read_bytes())
        with open(rows, newline="") as lines:
            print(json.dumps(told(list(csv.DictReader(lines))), indent=1))
    return 0


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`replay` on the command line of scripts/lab."""
    parser = commands.add_parser("replay", help="replay a trace on a device of a guest",
                                 description="Submits each request when its time has come, on the target or on "
                                 "another device of the guest, and prints latencies by operation.",
                                 usage="lab replay [options] TRACE")
    add_options(parser, without=("pull",))
    parser.add_argument("trace", type=Path, metavar="TRACE", help="a trace; docs/lab/traces.md has the formats")
    parser.add_argument("--on", default=DEVICE, metavar="DEVICE", help=f"of the guest; default: {DEVICE}")
    parser.add_argument("--setup", default=SETUP, metavar="COMMAND", help="what makes the device; default: the target "
                        "on the flash drive")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="a row a request, .csv or .parquet")
    parser.add_argument("--depth", type=int, default=DEPTH, metavar="N", help="requests under way at most")
    parser.add_argument("--format", default="", metavar="NAME", help=", ".join(blocktrace.FORMATS))
    parser.add_argument("--faster", type=float, default=1, metavar="F", help="so many times as fast as the trace")
    parser.add_argument("--first", type=int, metavar="N", help="so many requests; default: all")
    parser.add_argument("--rate", type=int, default=blocktrace.RATE, metavar="N",
                        help="requests a second of a trace without times")
    parser.add_argument("--size", type=int, default=SIZE, metavar="BYTES", help="of the log of a cache's trace")
    parser.set_defaults(function=_replay)

# SPDX-License-Identifier: GPL-2.0
"""A trace on the model of flash, without a guest: `lab firmware trace=FILE`.

emulator/simulator/replay.c replays it, on any personality. Here are its words, and the tables that come out.
"""

import csv
import importlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..util.base import LabError, output, say
from . import blocktrace, firmware

COLUMNS = ("n", "time_ns", "op", "offset", "bytes", "total_ns", "host_ns", "service_ns", "link_ns", "queue_ns",
           "cell_ns", "transfer_ns", "gc_ns", "status")
TEXTS = ("op", "status")


@dataclass
class Words:
    """Words that are not the drive's."""

    trace: str = ""
    format: str = ""
    rows: str = ""              # a file for the table; .csv or .parquet
    speed: float = 1
    rate: int = blocktrace.RATE
    first: int | None = None    # so many requests


def split(words: list[str]) -> tuple[Words, list[str]]:
    """Our words, and those of the program."""
    ours, others = Words(), []
    kinds = {one.name: float if one.name == "speed" else int if one.name in ("rate", "first") else str
             for one in fields(Words)}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in kinds:
            others.append(word)
            continue
        try:
            setattr(ours, name, kinds[name](value))
        except ValueError:
            raise LabError(f"'{word}' has no number") from None
    return ours, others


def _size(program: Path, words: list[str]) -> int:
    """Bytes that the host sees of such a drive."""
    plain = [word for word in words if word.split("=")[0] not in ("fill", "age")]
    found: dict[str, Any] = json.loads(output([program, "rows=/dev/null", *plain], input=""))
    return int(found["logical_bytes"])


def pyarrow() -> Any:
    """The module, or None where Debian has none."""
    try:
        for part in ("csv", "parquet"):
            importlib.import_module(f"pyarrow.{part}")
        return importlib.import_module("pyarrow")
    except ImportError:             # Debian 12 has no package of it
        return None


def to_parquet(rows: Path, path: Path) -> None:
    """The same table, a column each."""
    if not (arrow := pyarrow()):
        raise LabError(f"rows={path}: Parquet needs python3-pyarrow, which is not installed (Debian 12 has none), "
                       f"expected rows=FILE.csv")
    types = {name: arrow.string() if name in TEXTS else arrow.int64() for name in COLUMNS}
    arrow.parquet.write_table(arrow.csv.read_csv(rows, convert_options=arrow.csv.ConvertOptions(column_types=types)),
                              path)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The table, numbers as such."""
    with open(path, newline="") as f:
        return [{name: value if name in TEXTS else int(value) for name, value in row.items()}
                for row in csv.DictReader(f)]


def run(words: list[str], folder: Path) -> dict[str, Any]:
    """What the replay of words' trace found; folder: for files that are gone afterwards."""
    ours, others = split(words)
    parquet = ours.rows.endswith(".parquet")
    if parquet and not pyarrow():
        to_parquet(folder, Path(ours.rows))     # says why it cannot be
    program = firmware.build("replay")
    size = _size(program, others)
    requests = blocktrace.read(Path(ours.trace), ours.format, size=size, speed=ours.speed, rate=ours.rate,
                               most=ours.first)
    rows = Path(ours.rows) if ours.rows and not parquet else folder / "rows.csv"
    trace = folder / "trace"
    trace.write_text(blocktrace.lines(requests))
    with open(trace) as lines:
        found: dict[str, Any] = json.loads(output([program, f"rows={rows}", *others], stdin=lines))
    if parquet:
        to_parquet(rows, Path(ours.rows))
    if found["wrapped"]:
        say(f"{found['wrapped']} of {len(requests)} requests lay beyond the drive's {size >> 20} MiB, and were moved "
            f"inside")
    return found

# SPDX-License-Identifier: GPL-2.0
"""The page that explains a case of shrink.py.

All of it is read from the case's journal, and from what the judge tells of the one cut.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..util.base import write_file
from . import history, records

TEMPLATE = Path(__file__).with_name("explain.html.j2")
LAST = 24                   # of the drive's records that are shown
WIDTH, HEIGHT = 44, 24      # of a block, in pixels
FATES = {"d": "on flash before the cut", "s": "in the buffer, programmed at the cut",
         "l": "in the buffer, lost", "t": "torn: cannot be read"}
_NAMES = {records.NOTE_BEGIN: "write", records.NOTE_CLEAR: "discard or zeroes", records.NOTE_FLUSH: "flush"}


@dataclass
class Operation:
    """What a program asked for, and when that was acknowledged."""

    begun: int                  # ns
    name: str
    blocks: range
    versions: list[int]
    ended: int | None = None    # None: not before the cut
    says: str = ""


def operations(journal: Path, place: int) -> list[Operation]:
    """All that had begun when the power went, since the drive was formatted."""
    done: list[Operation] = []
    flying: dict[int, Operation] = {}
    versions: dict[int, int] = {}
    for note in records.notes(journal, place):
        if note.kind == records.NOTE_FORMATTED:
            done.clear()
        elif note.kind in _NAMES:
            blocks = range(note.block, note.block + note.nr)
            for block in blocks:
                versions[block] = versions.get(block, 0) + 1
            done.append(Operation(note.now, _NAMES[note.kind], blocks, [versions[block] for block in blocks]))
            flying[note.op] = done[-1]
        elif note.kind in records.ENDS:
            one = flying.pop(note.op)
            one.ended, one.says = note.now, "failed" if note.kind == records.NOTE_FAILED else ""
            if note.kind == records.NOTE_DURABLE:
                one.name = "write, FUA"
        elif note.kind == records.NOTE_COMMAND:
            done.append(Operation(note.now, history.COMMANDS[note.nr], range(0), []))
        elif note.kind == records.NOTE_CRASHED and done:
            done.append(Operation(note.now, "power cut and mount", range(0), []))
    return done


@dataclass(frozen=True)
class Came:
    """One block after the cut."""

    block: int
    written: int                # its newest version
    acknowledged: int
    found: int                  # 0: zeroes, -1: nothing that can be read
    wrong: bool


def came_back(done: Sequence[Operation], versions: Sequence[int], wrong: int | None) -> list[Came]:
    """Each block that was written, beside what the judge found in it."""
    written: dict[int, int] = {}
    acknowledged: dict[int, int] = {}
    for one in done:
        for block, version in zip(one.blocks, one.versions, strict=True):
            written[block] = version
            if one.ended is not None and not one.says:
                acknowledged[block] = max(version, acknowledged.get(block, 0))
    return [Came(block, version, acknowledged.get(block, 0), versions[block], block == wrong)
            for block, version in sorted(written.items())]


def write(folder: Path, case: Any, text: str, tale: Path) -> Path:
    """Make the page of a case; `text` is the judge's, `tale` what it told of the cut."""
    import jinja2  # other commands do without it

    told = json.loads(tale.read_text())
    done = operations(folder / "journal", case.place)
    found = re.search(r"block (\d+)", case.says)
    start = done[0].begun if done else 0
    template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                  undefined=jinja2.StrictUndefined).from_string(TEMPLATE.read_text())
    page = folder / "page.html"
    write_file(page, template.render(
        case=case, text=text, done=done, told=told, came=came_back(done, told["versions"], int(found[1]) if found
                                                                   else None),
        last=list(records.records(folder / "journal", case.place))[-LAST:], us=lambda ns: f"{(ns - start) / 1000:.3f}",
        folder=folder, width=WIDTH, height=HEIGHT, fates=FATES) + "\n")
    return page

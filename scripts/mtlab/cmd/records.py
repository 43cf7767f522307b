# SPDX-License-Identifier: GPL-2.0
"""Records of a journal of the flash, and the notes in them that tell what the oracle of a guest learned.

They are those of emulator/hw/nvme/flash/model/journal.h and target/tests/torture/notes.h.
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEAD = struct.Struct("<QIIQII")
NOTE = struct.Struct("<4I")
KINDS = ("shape", "buffered", "program begun", "programmed", "reset begun", "erase begun", "reset ended", "finished",
         "cut", "note")
(NOTE_BEGIN, NOTE_CLEAR, NOTE_ACKED, NOTE_FAILED, NOTE_DURABLE, NOTE_FLUSH, NOTE_FLUSHED, NOTE_CRASHED, NOTE_RECOVERED,
 NOTE_FORMATTING, NOTE_FORMATTED, NOTE_ORACLE, NOTE_WORKLOAD, NOTE_COMMAND) = range(14)
BEGINS = NOTE_BEGIN, NOTE_CLEAR, NOTE_FLUSH, NOTE_COMMAND
ENDS = NOTE_ACKED, NOTE_FAILED, NOTE_DURABLE, NOTE_FLUSHED


class Record(NamedTuple):
    """One change of what a cut would leave, or a note."""

    place: int
    now: int
    kind: str
    zone: int
    block: int
    nlb: int
    note: tuple[int, ...]       # empty unless it is one


class Note(NamedTuple):
    """One thing that the oracle learned, and where in the journal."""

    place: int
    now: int
    kind: int
    op: int
    block: int
    nr: int


def records(path: Path, before: int | None = None) -> Iterator[Record]:
    """The records of a journal, or those up to a place of it. The last one may be there in part."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at, end = 0, len(data) if before is None else before
        while at + HEAD.size <= end:
            now, kind, zone, block, nlb, size = HEAD.unpack_from(data, at)
            if at + HEAD.size + size > len(data):
                return
            note = NOTE.unpack_from(data, at + HEAD.size) if KINDS[kind] == "note" else ()
            yield Record(at, now, KINDS[kind], zone, block, nlb, note)
            at += HEAD.size + size


def notes(path: Path, before: int | None = None) -> Iterator[Note]:
    """Its notes alone."""
    for record in records(path, before):
        if record.note:
            yield Note(record.place, record.now, *record.note)

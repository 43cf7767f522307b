# SPDX-License-Identifier: GPL-2.0
"""Histories: short lists of operations that a guest carries out on a drive that was formatted for each.

target/tests/torture/history.c runs them. They are enumerated here, drawn, or taken from the journal of a long run; and
shrink.py makes them smaller.
"""

import itertools
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from . import records

BLOCKS = 8                  # of users, on the smallest drive
MOST_BLOCKS = 3             # of an operation
MOST_LANES = 3
NEW = 3                     # the first block that the preparation does not write
LONG = 3                    # workloads of so many operations are of few kinds
NONE = "rest", "fault"      # no operations: time that passes, and a write that will fail
# Weights of what is drawn. A fault is here so that each seed draws what it always drew: workload() takes it out.
DRAWN = {"write": 40, "fua": 8, "discard": 10, "zeroes": 3, "flush": 12, "gc": 8, "rest": 6, "checkpoint": 4,
         "suspend": 2, "pause": 2, "reload": 2, "cut": 1, "fault": 1}
# Points in the target at which a thread stands still, as target/tests/torture/linger/linger.c knows them.
LINGER = "linger-"
# What brings a thread there.
POINTS = {
    "lane-find": ("flush", "fua"), "lane-take": ("flush", "fua"), "lane-send": ("flush", "fua"), "gc-find": ("gc",),
    "gc-take": ("gc",), "gc-send": ("gc",), "work-find": ("gc", "discard"), "work-send": ("gc", "discard"),
    "sync": ("checkpoint", "gc"), "flush": ("flush", "checkpoint"), "manage": ("gc", "rest"), "user-read": ("read",),
    "user-lock": ("write", "discard"), "lane-lock": ("flush", "fua"), "user-unlock": ("write", "discard"),
    "copy-unlock": ("checkpoint",),
}
LINGERS = {"linger": 24, "read": 8}     # more weights, if threads do
LINGERS_MS = 2, 8, 32
LINGERS_AT = 2              # points of a history
MOST_FAULTS = 3             # each may cost a zone
COMMANDS = "checkpoint", "gc", "suspend", "pause", "reload"     # enum disturbance of target/tests/torture/device.h


class Step(NamedTuple):
    """One operation. Those on no blocks have 0 and 1."""

    name: str
    block: int = 0
    nr: int = 1
    cpu: int = 0
    together: bool = False      # the next one begins without waiting for it

    def __str__(self) -> str:
        return f"{self.name} {self.block} {self.nr} {self.cpu}{' &' * self.together}"


@dataclass(frozen=True)
class History:
    """Operations in order, on a drive with so many lanes."""

    lanes: int
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in (f"history {self.lanes}", *self.steps))

    @property
    def operations(self) -> int:
        return operations(self.steps)

    @property
    def lingers(self) -> bool:
        """Does any thread stand still at a point?"""
        return any(step.name.startswith(LINGER) for step in self.steps)

    def without(self, first: int, last: int) -> "History":
        return replace(self, steps=self.steps[:first] + self.steps[last:])


def operations(steps: Iterable[Step]) -> int:
    """How many of these steps ask for something, instead of waiting or preparing what others meet."""
    return sum(step.name not in NONE and not step.name.startswith(LINGER) for step in steps)


def parse(text: str) -> list[History]:
    """The histories of a file."""
    found = []
    for part in re.split(r"^history ", text, flags=re.M)[1:]:
        lanes, *lines = part.splitlines()
        found.append(History(int(lanes), tuple(map(_step, lines))))
    return found


def _step(line: str) -> Step:
    name, block, nr, cpu, *mark = line.split()
    return Step(name, int(block), int(nr), int(cpu), bool(mark))


# Three blocks are written several times, so that there are full zones; the others never were.
PREPARED = tuple(Step("fua", number % NEW) for number in range(9))


def _letters(few: bool) -> list[tuple[Step, ...]]:
    """The operations that short workloads are made of; collection may go on until moves and erases have ended."""
    alone = [(Step("flush"),), (Step("gc"),), (Step("gc"), Step("rest"))]
    if few:
        return [(Step("write", NEW),), (Step("write"),), alone[0], (Step("discard"),), *alone[1:]]
    sizes = range(1, MOST_BLOCKS + 1)
    return [*([(Step(name, block, nr),) for name, block in (("write", NEW), ("write", 0), ("fua", 0), ("discard", 0),
                                                            ("zeroes", 0)) for nr in sizes]),
            *alone, *((Step(name),) for name in ("checkpoint", "suspend", "reload"))]


def enumerated(length: int) -> Iterator[History]:
    """All workloads of up to so many operations, each after the preparation; long ones of few kinds."""
    few = length >= LONG
    for lanes in range(1, 2 if few else MOST_LANES + 1):
        for several in range(1, length + 1):
            for word in itertools.product(_letters(few), repeat=several):
                yield History(lanes, PREPARED + tuple(step._replace(cpu=at % lanes)
                                                      for at, letter in enumerate(word) for step in letter))


def drawn(seed: int, length: int) -> History:
    """One with operations that a seed chooses."""
    rng = random.Random(seed)
    lanes, steps = rng.randint(1, MOST_LANES), []
    for name in rng.choices([*DRAWN], [*DRAWN.values()], k=length):
        of_blocks = name in ("write", "fua", "discard", "zeroes")
        nr = rng.randint(1, MOST_BLOCKS) if of_blocks else 1
        block = rng.randint(0, BLOCKS - nr) if of_blocks or name == "fault" else 0
        # One command at a time: device-mapper refuses another one meanwhile.
        together = (of_blocks or name == "flush") and not rng.randrange(4)
        steps.append(Step(name, block, nr, rng.randrange(lanes), together))
    return History(lanes, PREPARED + tuple(steps))


def lingering(seed: int, length: int) -> History:
    """One in which threads stand still at points, and what follows mostly goes on beside them.

    Each history has few points, few blocks, and more of some operations than of others: together they try more than if
    all had everything.
    """
    rng = random.Random(seed)
    lanes, blocks, points = rng.randint(1, MOST_LANES), rng.choice((2, 4, BLOCKS)), rng.sample([*POINTS], LINGERS_AT)
    weights = {name: weight * (1 if name in ("linger", "write", "flush") else rng.choice((0, 1, 1, 3)))
               for name, weight in (DRAWN | LINGERS).items()}
    steps: list[Step] = []
    armed = ""
    for name in rng.choices([*weights], [*weights.values()], k=length):
        if name == "linger":
            armed = rng.choice(points)
            steps.append(Step(LINGER + armed, 0, rng.choice(LINGERS_MS)))
            continue
        if armed and rng.randrange(4):
            name = rng.choice(POINTS[armed])
        of_blocks = name in ("write", "fua", "discard", "zeroes", "read")
        nr = rng.randint(1, min(blocks, MOST_BLOCKS)) if of_blocks else 1
        block = rng.randint(0, blocks - nr) if of_blocks else 0
        # A suspend or a reload would wait for what stands still.
        may = of_blocks or name in ("flush", "checkpoint", "gc")
        together = may and rng.randrange(4) < (3 if armed else 1)
        armed = ""
        steps.append(Step(name, block, nr, rng.randrange(lanes), together))
    return History(lanes, PREPARED + tuple(steps))


def with_faults(one: History, seed: int) -> History:
    """With a few writes that fail, each in a zone that the seed draws."""
    rng = random.Random(f"faults of {seed}, {one}")
    steps = [step for step in one.steps[len(PREPARED):] if step.name != "fault"]
    for _ in range(rng.randint(1, MOST_FAULTS)):
        steps.insert(rng.randint(0, len(steps)), Step("fault", rng.randrange(BLOCKS)))
    return replace(one, steps=PREPARED + tuple(steps))


def workload(seed: int, length: int, linger: bool = False, faults: bool = False) -> History:
    """What a seed draws, as it is run: with a few writes that fail, or with none.

    More would take a drive's last spare zone. Then others fail, too, and that shows nothing.
    """
    one = (lingering if linger else drawn)(seed, length)
    if faults:
        return with_faults(one, seed)
    return replace(one, steps=tuple(step for step in one.steps if step.name != "fault"))


def of_journal(path: Path, before: int) -> list[Step]:
    """What a long run had begun since its drive was formatted, up to a place of its journal.

    On the smallest drive: fewer blocks, the same kinds, the same order. What overlapped there begins together here.
    """
    steps: list[Step] = []
    begun: dict[int, int] = {}      # operations in flight, and their place in the list
    tags: dict[int, int] = {}       # and whose they are

    def add(step: Step, tag: int) -> None:
        if steps and len(steps) - 1 in begun.values():
            steps[-1] = steps[-1]._replace(together=True)
        steps.append(step._replace(cpu=tags.setdefault(tag, len(tags)) % MOST_LANES))

    for note in records.notes(path, before):
        nr = min(note.nr, MOST_BLOCKS)
        if note.kind in (records.NOTE_BEGIN, records.NOTE_CLEAR):
            add(Step("write" if note.kind == records.NOTE_BEGIN else "discard",
                     min(note.block % BLOCKS, BLOCKS - nr), nr), note.op)
            begun[note.op] = len(steps) - 1
        elif note.kind == records.NOTE_FLUSH:
            add(Step("flush"), note.op)
            begun[note.op] = len(steps) - 1
        elif note.kind in records.ENDS:
            at = begun.pop(note.op)
            if note.kind == records.NOTE_DURABLE:
                steps[at] = steps[at]._replace(name="fua")
        elif note.kind == records.NOTE_COMMAND:
            add(Step(COMMANDS[note.nr]), 0)
        elif note.kind == records.NOTE_CRASHED:
            add(Step("cut"), 0)
            begun.clear()
        elif note.kind == records.NOTE_FORMATTED:
            steps.clear()
            begun.clear()
    return steps


def windows(steps: Sequence[Step], lengths: Sequence[int]) -> Iterator[History]:
    """The last operations of a run, so many of them, on each number of lanes."""
    for length in lengths:
        for lanes in range(1, MOST_LANES + 1):
            yield History(lanes, PREPARED + tuple(step._replace(cpu=step.cpu % lanes) for step in steps[-length:]))

# SPDX-License-Identifier: GPL-2.0
"""The target's tracepoints in the kernel's text: what happened to blocks, on which CPU, and when."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Ends of a block's way, in order; the tracepoint of each.
KINDS = {"inserted": "insert", "composed": "unit_composed", "sent": "unit_submitted", "completed": "unit_completed"}
FREED = "free"              # slots of a buffer
_LINE = re.compile(
    r"\[(\d+)\] +\S+ +(\d+)\.(\d{6}): mtftl_(\w+): \d+,\d+ lane (-?\d+) "
    r"(?:lba \d+ \+ (?P<insert>\d+) used (\d+)|seq \d+ slots (?P<taken>\d+) |\w+ seq \d+ blocks (?P<unit>\d+) |"
    r"used (\d+))")


@dataclass(frozen=True)
class Event:
    """One line of a trace."""

    us: int                 # since the first one
    cpu: int
    kind: str               # of KINDS, or FREED
    lane: int               # -1: of no lane, as what GC and checkpoints write
    blocks: int
    used: int = 0           # slots of the lane's buffer, where the tracepoint says that


def parse(text: str) -> list[Event]:
    """All events of blocks, in the order of time; other lines of the trace are passed over."""
    names = {name: kind for kind, name in KINDS.items()} | {FREED: FREED}
    found = []
    for match in map(_LINE.search, text.splitlines()):
        if match and match[4] in names:
            blocks = next((int(match[group]) for group in ("insert", "taken", "unit") if match[group]), 0)
            found.append(Event(int(match[2]) * 10**6 + int(match[3]), int(match[1]), names[match[4]], int(match[5]),
                               blocks, int(match[7] or match[10] or 0)))
    found.sort(key=lambda event: event.us)
    return [Event(e.us - found[0].us, e.cpu, e.kind, e.lane, e.blocks, e.used) for e in found]


def rates(events: Iterable[Event], kind: str, cpu: int, start: int, end: int, steps: int) -> list[float]:
    """Blocks of a kind on a CPU in each of the equal steps of the time from start to end, in microseconds."""
    found = [0.0] * steps
    for event in events:
        if (event.kind, event.cpu) == (kind, cpu) and start <= event.us < end:
            found[(event.us - start) * steps // (end - start)] += event.blocks
    return found


def entries_used(events: Iterable[Event], lane: int, end_us: int, step_us: int) -> list[float]:
    """Entries of a lane's buffer that are used: the mean of each step of time up to the end."""
    area, used, at = [0.0] * (end_us // step_us), 0, 0
    for event in [*events, Event(end_us, 0, FREED, lane, 0)]:
        if event.lane != lane or event.kind == "composed":
            continue
        when = min(event.us, end_us)
        while at < when:
            step = at // step_us
            until = min(when, (step + 1) * step_us)
            area[step] += used * (until - at)
            at = until
        used = event.used
    return [a / step_us for a in area]


def totals(events: Sequence[Event]) -> list[list[str]]:
    """A row a CPU, and one of all: blocks of each kind."""
    cpus = sorted({event.cpu for event in events})
    rows = [["CPU", *(f"{kind}" for kind in KINDS)]]
    for name, of in ((*((str(cpu), {cpu}) for cpu in cpus), ("all", set(cpus)))):
        rows.append([name, *(str(sum(e.blocks for e in events if e.kind == kind and e.cpu in of)) for kind in KINDS)])
    return rows

# SPDX-License-Identifier: GPL-2.0
"""Fragmentation inside the drive: the measurements of "We Ain't Afraid of No File Fragmentation" (FAST '24).

A file is written in pieces, with others' pieces between them, and read back in order; or many files are, by many
users. On the paper's drive (profile fast24) with and without its hints, beside the numbers that its artifact prints; on
other geometries, beside a closed form; and on a zoned drive of the same flash under dm-mtftl, which gets no hints.
Plans for guest-pieces say what is written and read, in KiB.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from mtlab.build import guest
from mtlab.exp import fast24, figures, glibc
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, within
from mtlab.exp.fast24 import LOADS, PRINTED, SERVERS
from mtlab.exp.sources import KNOWN
from mtlab.run.options import Options

FILE, READ, PIECE, COMMAND = 8192, 1024, 32, 256        # KiB
LAYOUTS = (1, 2, 3)             # seeds of what is random; the first stands for the artifact's own numbers
KINDS = ("worst", "random")
SPEED = 2                       # instructions a nanosecond: the artifact's machine has 2 GHz
MIB = 1 << 20
FILLED = 200 * MIB              # by rand(), before the artifact's programs draw their gaps by it


@dataclass(frozen=True)
class Flash:
    """A drive as the closed form sees it: dies, KiB of a page, microseconds, MiB/s."""

    channels: int
    dies: int                   # of a channel
    page: int
    read: float
    channel: float
    link: float = 0
    firmware: float = 30.49
    more: dict[str, str] = field(default_factory=dict)

    @property
    def stripe(self) -> int:
        return self.channels * self.dies * self.page

    def device(self) -> dict[str, str]:
        return {"flash.channels": f"{self.channels}", "flash.dies": f"{self.dies}", "flash.page": f"{self.page}K",
                "flash.read_ns": f"{round(1000 * self.read)}", "flash.channel_rate": f"{round(self.channel * MIB)}",
                "flash.link_rate": f"{round(self.link * MIB)}", "nvme0.mdts": "6", "flash.hints": "on"} | self.more

    def micros(self, dies: list[int]) -> float:
        """How long a read of whole pages on these dies takes: the fullest die, channel, or link, and the firmware."""
        transfer = self.page / 1024 / self.channel * 1e6
        passing = self.page / 1024 / self.link * 1e6 if self.link else 0
        cached = self.more.get("flash.cache") == "on"
        most = max(dies.count(die) for die in dies)
        die = self.read + transfer + (most - 1) * (max(self.read, transfer) if cached else self.read + transfer)
        on_channel = [sum(1 for x in dies if x % self.channels == c) for c in range(self.channels)]
        channel = self.read + max(on_channel) * transfer
        # the channels that are busy to the end bring their last pages together
        tail = on_channel.count(max(on_channel)) * passing
        return self.firmware + max(max(die, channel) + tail, self.read + transfer + len(dies) * passing)


DRIVES = {
    "paper": Flash(4, 2, 32, 36.013, 800, 3360),
    "2x2, 16 KiB": Flash(2, 2, 16, 50, 400),
    "8x1, 32 KiB": Flash(8, 1, 32, 60, 1200),
    "4x4, 16 KiB, cache": Flash(4, 4, 16, 40, 800, 0, 30.49, {"flash.cache": "on"}),
}
OTHERS = tuple(name for name in DRIVES if name != "paper")
# What of a read is software's: the paper's drive with a flash that takes no time.
SOFTWARE = "software"
INSTANT = {"flash.delay_read": "off", "flash.delay_program": "off", "flash.delay_transfer": "off",
           "flash.read_cmd_ns": "0", "flash.long_read_ns": "0", "flash.write_cmd_ns": "0"}
# The same flash as a zoned drive for dm-mtftl. Cache: the next cell read overlaps a transfer.
ZONED = {"zoned": "on", "flash.personality": "zns", "flash.zone_dies": "0", "flash.hints": "off",
         "zoned.zone_size": "4M", "zoned.zone_capacity": "4M", "zoned.max_open": "14", "zoned.max_active": "14"}
# Metadata: headers lie there, and not between the data.
HOSTS: dict[str, dict[str, str]] = {"host": {}, "host, cache": {"flash.cache": "on"}, "host, metadata": {"ms": "16"}}


class Plan:
    """Lines for guest-pieces, and the die of each page where the drive writes them one after the other."""

    def __init__(self, flash: Flash, flush: bool = False) -> None:
        self.lines: list[str] = []
        self.flash = flash
        self.flush = flush
        self.free = 0               # where nothing has its place yet
        self.turn = 0               # the die that comes next
        self.die: dict[int, int] = {}
        self.reads: dict[str, list[list[int]]] = {}         # by what is measured: the dies of each read

    def take(self, size: int) -> int:
        at, self.free = self.free, self.free + size
        return at

    def write(self, at: int, size: int, before: int | None = None, over: bool = False) -> None:
        """Before: where the last block before it lies, for a hint; over: hint at an overwrite."""
        dies = self.flash.channels * self.flash.dies
        for place in range(at, at + size, COMMAND):
            part = min(COMMAND, at + size - place)
            if before is not None:
                self.lines.append(f"a {place} {part} {before}")
                self.turn = (self.die.get(before // self.flash.page, self.turn - 1) + 1) % dies
                before = place + part - 4
            elif over:
                self.lines.append(f"o {place} {part}")
                self.turn = self.die.get(place // self.flash.page, self.turn)
            else:
                self.lines.append(f"w {place} {part}")
            for page in range(place // self.flash.page, (place + part) // self.flash.page):
                self.die[page] = self.turn
                self.turn = (self.turn + 1) % dies
        if self.flush:
            self.lines.append("f")

    def read(self, what: str, pieces: Iterable[list[tuple[int, int]]], times: int = 2) -> None:
        """Each list of pieces at once."""
        lists = list(pieces)
        self.lines.append("f")
        for _ in range(times):
            self.lines += ["r " + " ".join(f"{at} {size}" for at, size in x) for x in lists]
        self.lines.append(f"= {what}")
        self.reads[what] = [[self.die[page] for at, size in x
                             for page in range(at // self.flash.page, (at + size) // self.flash.page)] for x in lists]

    def whole(self, at: int, size: int = FILE, step: int = READ) -> list[list[tuple[int, int]]]:
        return [[(at + x, step)] for x in range(0, size, step)]

    def script(self, device: str) -> str:
        return "cat >plan <<'END'\n" + "\n".join(self.lines) + f"\nEND\n./guest-pieces {device} <plan >found\n"


def _gaps(plan: Plan, kind: str, seed: int, piece: int = PIECE) -> Iterator[int]:
    """What others write behind each piece: so much that the next one falls on the same die, or anything."""
    if kind == "worst":
        yield from itertools.repeat(-piece % plan.flash.stripe or plan.flash.stripe)
    if seed == LAYOUTS[0]:
        yield from (piece * (x % 32 + 1) for x in glibc.rand(FILLED, FILE // PIECE))
    chance = random.Random(seed)
    while True:
        yield piece * chance.randint(1, 32)


def _append(plan: Plan, kind: str, seed: int, hints: bool, apart: bool = True, piece: int = PIECE,
            size: int = FILE) -> list[tuple[int, int]]:
    """The pieces of a file; apart: others' blocks lie between them, as in the artifact, else elsewhere."""
    pieces: list[tuple[int, int]] = []
    at = 0 if apart else plan.take(size)
    for i, others in zip(range(size // piece), _gaps(plan, kind, seed, piece), strict=False):
        here = plan.take(piece) if apart else at + i * piece
        plan.write(here, piece, sum(pieces[-1]) - 4 if hints and pieces else None)
        pieces.append((here, piece))
        plan.write(plan.take(others), others)
    return pieces


def _overwrite(plan: Plan, kind: str, seed: int, hints: bool, at: int) -> None:
    for i, others in zip(range(FILE // PIECE), _gaps(plan, kind, seed), strict=False):
        plan.write(at + i * PIECE, PIECE, over=hints)
        plan.write(plan.take(others), others)


def _contiguous(plan: Plan) -> int:
    at = plan.take(FILE)
    plan.write(at, FILE)
    return at


def _hypothetical(plan: Plan, hints: bool, layouts: Iterable[int], apart: bool = True) -> None:
    """The paper's main table."""
    mark = " hinted" if hints else ""
    if not hints:
        plan.read("contiguous", plan.whole(_contiguous(plan)))
    for kind in KINDS:
        for seed in layouts if kind == "random" else [0]:
            pieces = _append(plan, kind, seed, hints, apart)
            per_read = READ // PIECE
            plan.read(f"append {kind} {seed}{mark}",
                      [pieces[i:i + per_read] for i in range(0, len(pieces), per_read)] if apart else
                      plan.whole(pieces[0][0]))
            at = _contiguous(plan)
            _overwrite(plan, kind, seed, hints, at)
            plan.read(f"overwrite {kind} {seed}{mark}", plan.whole(at))


def _sqlite(plan: Plan, hints: bool, records: int) -> None:
    """Records of 16 KiB, 100 KiB of others after each, read in order through the page cache.

    With each record sqlite writes three pages again: the first, one of its index, the last leaf.
    """
    size = records * 16
    if not hints:
        at = plan.take(size)
        plan.write(at, size)
        plan.lines += ["f", f"b {at} {size}", "= sqlite contiguous"]
    again = [plan.take(4) for _ in range(3)]
    for page in again:
        plan.write(page, 4)
    at = plan.take(size)
    for i in range(records):
        for page in again:
            plan.write(page, 4, over=hints)
        plan.write(at + 16 * i, 16, at + 16 * i - 4 if hints and i else None)
        plan.write(plan.take(100), 100)
    plan.lines += ["f", f"b {at} {size}", f"= sqlite{' hinted' if hints else ''}"]


# The fileserver's files: how many, KiB of one at first and at last; its users; how many inodes a block of ext4 holds.
# 80 files are whole rounds of the dies, as 10,000 are; an odd number of pages has the next file begin on another die.
FILES, CREATED, GROWN, USERS, INODES = 80, 128, 992, 10, 16


def _serve(plan: Plan, what: str, files: Iterable[list[tuple[int, int]]]) -> None:
    """Each user reads a file, all pieces at once, then the next one."""
    reads = ["r " + " ".join(f"{at} {size}" for at, size in file) for file in files]
    plan.lines += ["f", f"t {USERS}", *(4 * reads), f"= {what}", "t 1"]


def _fileserver(plan: Plan, hints: bool, append: int, apart: bool = True) -> None:
    """Users append to all files in turn, then read them; apart: as for a single file.

    The file system writes a block of inodes again when their files were written to: few pieces begin with a page.
    """
    inodes = plan.take(plan.flash.page)
    count = itertools.count(1)

    def write(at: int, size: int, before: int | None = None) -> None:
        plan.write(at, size, before)
        if next(count) % INODES == 0:
            plan.write(inodes, 4)

    name = SERVERS[append]
    if not hints:
        contiguous = [(plan.take(GROWN), GROWN) for _ in range(FILES)]
        for at, size in contiguous:
            write(at, size)
        _serve(plan, f"{name} contiguous", ([piece] for piece in contiguous))
    files = [[(plan.take(CREATED if apart else GROWN), CREATED)] for _ in range(FILES)]
    for file in files:
        write(*file[0])
    chance = random.Random(append)
    for _ in range(CREATED, GROWN, append):
        for first in range(0, FILES, USERS):
            # each user has one of the next files; which is first is open
            for file in chance.sample(files[first:first + USERS], USERS):
                end = sum(file[-1])
                file.append((plan.take(append) if apart else end, append))
                write(*file[-1], end - 4 if hints else None)
    _serve(plan, f"{name}{' hinted' if hints else ''}",
           files if apart else ([(file[0][0], GROWN)] for file in files))


DEGREES = (1, 4, 16, 32, 64, 128, 256)
SIZES = (32, 64, 128, 256, 512, 1024)


def _figures(plan: Plan) -> None:
    """By the number of pieces, with one command or all of them at a time; by the size of requests."""
    for degree in DEGREES:
        pieces = _append(plan, "worst", 0, False, piece=FILE // degree)
        commands = [(at + x, min(COMMAND, size)) for at, size in pieces for x in range(0, size, COMMAND)]
        plan.read(f"degree {degree} all", [commands], 1)
        plan.read(f"degree {degree} one", [[x] for x in commands], 1)
    at = _contiguous(plan)
    worst = _contiguous(plan)
    _overwrite(plan, "worst", 0, False, worst)
    for size in SIZES:
        plan.read(f"size {size} contiguous", plan.whole(at, step=size), 1)
        plan.read(f"size {size} worst", plan.whole(worst, step=size), 1)


SERVING = ", fileserver"            # stands behind a drive's name where the drive is a fresh one for this load


def _plan(drive: str, quick: bool) -> Plan:
    if drive.endswith(SERVING):
        drive = drive.removesuffix(SERVING)
        plan = Plan(DRIVES["paper"])            # without any flush
        for hints in (False, True) if drive == "paper" else (False,):
            for append in SERVERS:
                _fileserver(plan, hints, append, apart=drive not in HOSTS)
        return plan
    layouts = LAYOUTS[:1] if quick or drive == SOFTWARE else LAYOUTS
    plan = Plan(DRIVES.get(drive, DRIVES["paper"]), flush=drive in HOSTS)
    _hypothetical(plan, False, layouts, apart=drive not in HOSTS)
    if drive in DRIVES:
        _hypothetical(plan, True, layouts[:1])
    if drive == "paper" and not quick:
        _figures(plan)
    if drive in ("paper", *HOSTS) and not quick:
        for hints in (False, True) if drive == "paper" else (False,):
            _sqlite(plan, hints, 500)
    return plan


def runs(quick: bool) -> list[Run]:
    names = ["paper", SOFTWARE, *HOSTS]
    if not quick:
        names += [*OTHERS, *(drive + SERVING for drive in ("paper", *HOSTS))]
    tool = [guest.program("guest-pieces")]
    result = []
    for name in names:
        plan = _plan(name, quick)
        drive = name.removesuffix(SERVING)
        host = drive in HOSTS
        device = plan.flash.device() | {"flash.size": "2G"}
        if host:
            device |= ZONED | HOSTS[drive]
        elif name == SOFTWARE:
            device |= INSTANT
        script = plan.script("/dev/mapper/ftl" if host else "/dev/nvme0n1")
        if host:
            script = ("set -e\nmtftl format --force /dev/nvme0n1 >/dev/null\nmtftl open /dev/nvme0n1 ftl\n" + script +
                      "mtftl close ftl\n")
        options = Options(clock="virtual", cpus=4 if host else 2, speed=SPEED, profile="fast24", timeout=1800,
                          module=host, device=device, push=tool)
        # what pieces meet under dm-mtftl differs by some per cent from start to start
        result.append(Run(name, script, options, ("found",), seeds=5 if host else 1, seconds=15 if host else 8))
    return result


def _found(data: bytes) -> dict[str, tuple[int, int]]:
    """Bytes and nanoseconds of each line."""
    return {" ".join(words[:-2]): (int(words[-2]), int(words[-1]))
            for words in (line.split() for line in data.decode().splitlines())}


def _contiguous_of(what: str) -> str:
    """What a read is compared with."""
    return next((f"{load} contiguous" for load in reversed(LOADS) if what.startswith(load)), "contiguous")


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    instant = _found(files[SOFTWARE]["found"])
    quick = not any("sqlite" in what for what in _found(files["paper"]["found"]))
    for name, outputs in files.items():
        took = _found(outputs["found"])
        flash, reads = DRIVES.get(name), _plan(name, quick).reads
        for what, (size, ns) in took.items():
            contiguous = took[_contiguous_of(what)]
            share = size / ns * contiguous[1] / contiguous[0]
            sample: Sample = {"drive": name.removesuffix(SERVING), "what": what,
                              "mib_per_s": round(size / ns * 1e9 / MIB, 1), "of_contiguous": round(share, 4)}
            if flash and what.startswith(("contiguous", "append", "overwrite")):
                # an append is read by as many commands as it has pieces, the others as a contiguous file is
                like = instant["append worst 0" if what.startswith("append") else "contiguous"]
                software = like[1] / like[0] * READ * 1024 / 1000
                micros = sum(flash.micros(dies) + software for dies in reads[what])
                sample["closed_form"] = round(len(reads[what]) * READ / 1024 / micros * 1e6, 1)
            elif flash and what in reads:       # without software: commands differ in size, and so does its part
                micros = sum(flash.micros(dies) for dies in reads[what])
                pages = sum(len(dies) for dies in reads[what])
                sample["closed_form"] = round(pages * flash.page / 1024 / micros * 1e6, 1)
            found.append(sample)
    return found


def _value(found: list[Sample], drive: str, what: str, key: str = "mib_per_s", hinted: bool = False) -> float:
    """The median over layouts."""
    mark = " hinted" if hinted and not what.endswith("contiguous") else ""
    names = {what + mark, *(f"{what} {seed}{mark}" for seed in (0, *LAYOUTS))}
    return float(median(s[key] for s in found if s["drive"] == drive and s["what"] in names))


def _share(found: list[Sample], drive: str, what: str, hinted: bool = False) -> float:
    """Of what a contiguous file gives."""
    return _value(found, drive, what, "of_contiguous", hinted)


def _table_names(quick: bool) -> list[str]:
    return [name for name in PRINTED if not quick or not name.startswith(LOADS)]


def _absolute(found: list[Sample], name: str, late: str = "") -> list[Check]:
    """A load's three lines."""
    return [within(f"the paper's drive, {what}{', hints' if hinted else ''} (MiB/s)",
                   _value(found, "paper", what, hinted=hinted), PRINTED[what][hinted], 0.1, fast24.line(what, hinted),
                   f"It is {_value(found, 'paper', what, hinted=hinted) / PRINTED[what][hinted]:.2f} times what the "
                   f"artifact prints, of a contiguous file's {_share(found, 'paper', what, hinted):.2f} "
                   f"(the artifact: {PRINTED[what][hinted] / PRINTED[f'{name} contiguous'][0]:.2f}).", late)
            for what, hinted in ((f"{name} contiguous", False), (name, False), (name, True))]


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = []
    for name in _table_names(True):
        for hinted in (False, True):
            if hinted and name.endswith("contiguous"):
                continue
            result.append(within(f"the paper's drive, {name}{', hints' if hinted else ''} (MiB/s)",
                                 _value(found, "paper", name, hinted=hinted), PRINTED[name][hinted], 0.1,
                                 fast24.line(name, hinted)))
    if not quick:
        for name in SERVERS.values():
            result += _absolute(found, name)
        result += _absolute(found, "sqlite", KNOWN)
        result += [within(f"the paper's drive, {name} over contiguous{', hints' if hinted else ''}",
                          _share(found, "paper", name, hinted),
                          PRINTED[name][hinted] / PRINTED[f"{name} contiguous"][0], 0.1, fast24.line(name, hinted),
                          "The contiguous file is read at "
                          f"{_value(found, 'paper', f'{name} contiguous') / PRINTED[f'{name} contiguous'][0]:.2f} "
                          "times what the artifact prints.")
                   for name in LOADS for hinted in (False, True)]
    for drive in ["paper"] if quick else DRIVES:
        for name in ("append worst", "append random", "overwrite worst", "overwrite random"):
            for hinted in (False, True):
                result.append(within(f"{drive}: {name}{', hints' if hinted else ''} (MiB/s)",
                                     _value(found, drive, name, hinted=hinted),
                                     _value(found, drive, name, "closed_form", hinted), 0.05,
                                     form("the fullest die, channel or the link, and software")))
    if not quick:
        result += _figures_hold(found)
    for drive in HOSTS:
        result += [at_least(f"dm-mtftl ({drive}): {name} over contiguous", _share(found, drive, name), 0.95,
                            ours("each of several writers in order has a zone of its own"))
                   for name in _table_names(True) if name != "contiguous"]
        if not quick:
            result += [at_least(f"dm-mtftl ({drive}): {name} over contiguous", _share(found, drive, name),
                                PRINTED[name][1] / PRINTED[f"{name} contiguous"][1],
                                ours("as much as the paper's hints give on a drive with an FTL of its own"))
                       for name in LOADS]
    return result


def _figures_hold(found: list[Sample]) -> list[Check]:
    """By the number of pieces and by the size of requests; a command at a time waits for software, too."""
    together = [f"degree {d} all" for d in DEGREES]
    alone = [*(f"degree {d} one" for d in DEGREES), *(f"size {s} {kind}" for s in SIZES
                                                      for kind in ("contiguous", "worst"))]
    share = {what: _value(found, "paper", what) / _value(found, "paper", what, "closed_form")
             for what in (*together, *alone)}
    result = []
    for label, names, low, why in (
            ("all commands at a time", together, 0.95, "the fullest die, channel or the link"),
            ("one command at a time", alone, 0.8, "the fullest die, channel or the link; software adds to each "
             "command")):
        of = [share[what] for what in names]
        result.append(Check(f"paper: by pieces and sizes, {label}, least over the flash's time", min(of), low, 1,
                            form(why), late=KNOWN))
        result.append(Check(f"paper: by pieces and sizes, {label}, most over the flash's time", max(of), low, 1,
                            form(why), late=KNOWN))
    return [
        *result,
        at_most("paper: pieces on one die, 256 over 1, all commands at a time",
                _value(found, "paper", together[-1]) / _value(found, "paper", together[0]), 0.2,
                ours("a file in pieces on one die is read by one die of eight"), late=KNOWN),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    quick = not any(s["what"].startswith(LOADS) for s in found)
    rows = [["read", "paper", "here", "paper, hints", "here, hints", *(f"dm-mtftl ({drive})" for drive in HOSTS)]]
    for name in _table_names(quick):
        hinted = not name.endswith("contiguous")
        host = [f"{_value(found, d, name):.0f} ({_share(found, d, name):.0%})" for d in HOSTS]
        rows.append([name, f"{PRINTED[name][0]:.0f}", f"{_value(found, 'paper', name):.0f}",
                     *([f"{PRINTED[name][1]:.0f}", f"{_value(found, 'paper', name, hinted=True):.0f}"]
                       if hinted else ["-", "-"]), *host])
    return rows


def draw(found: list[Sample], path: Path) -> None:
    quick = not any(s["what"].startswith(LOADS) for s in found)
    figure, panels = figures.panels(2 if quick else 6, height=3.2)
    hypothetical = _table_names(True)
    tables = {"one file": hypothetical, "sqlite, fileserver": [x for x in PRINTED if x not in hypothetical]}
    for number, (title, names) in enumerate(list(tables.items())[:1 if quick else 2]):
        groups = [x.replace("overwrite", "over- write").replace("fileserver", "server").replace("contiguous", "contig.")
                  .replace(" ", "\n") for x in names]
        drive = figures.Bars("here", [_value(found, "paper", x) for x in names])
        hinted = figures.Bars("here, hints", [_value(found, "paper", x, hinted=True) for x in names])
        figures.bars(panels[2 * number], groups, [
            figures.Bars("paper", [PRINTED[x][0] for x in names]), drive,
            figures.Bars("paper, hints", [PRINTED[x][1] for x in names]), hinted],
            y="MiB/s", title=f"{title}: the paper's drive")
        figures.bars(panels[2 * number + 1], groups, [
            figures.Bars("drive's own FTL", drive.y),
            *(figures.Bars(f"dm-mtftl ({d})", [_value(found, d, x) for x in names]) for d in HOSTS)],
            y="MiB/s", title=f"{title}: the same flash, zoned")
    if not quick:
        figures.lines(panels[4], [figures.Line(f"{label} at a time", DEGREES,
                                               [_value(found, "paper", f"degree {d} {depth}") for d in DEGREES])
                                  for depth, label in (("all", "all commands"), ("one", "one command"))],
                      x="pieces of 8 MiB, all on one die", y="MiB/s", title="by the number of pieces", log2_x=True,
                      columns=2)
        figures.lines(panels[5], [figures.Line(kind, SIZES, [_value(found, "paper", f"size {s} {kind}") for s in SIZES])
                                  for kind in ("contiguous", "worst")], x="request (KiB)", y="MiB/s",
                      title="by the size of requests", log2_x=True, columns=2)
    figures.save(figure, path)


ABOUT = About(
    title="Fragmentation inside the drive",
    question="How fast is a file read that was written in pieces, between others', and what helps?",
    by=("drive", "what"),
    caption="Direct reads of 1 MiB of a file of 8 MiB, MiB/s; in brackets the share of a contiguous file. The file "
            "was appended to, or overwritten, by 32 KiB at a time. Between two pieces others write so much that all "
            "fall on one die (worst), or 1 to 32 pieces (random; median of three). fileserver: ten users append to "
            "80 files in turn, by 32 KiB (small: 16), and then read whole files. Paper: what its artifact prints "
            "for NVMeVirt, without and with its approach (hints from the file system). dm-mtftl: the same flash as "
            "a zoned drive, no hints, a flush after each write except the fileserver's. Cache: a drive that reads "
            "the next page during a transfer; metadata: one that has 16 bytes beside each block.")

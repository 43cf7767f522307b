# SPDX-License-Identifier: GPL-2.0
"""Which drives the tests of the target have, as docs/use/drives.md lists them.

Read from what they declare: the headers of target/tests/guest/*.sh with the profiles of the emulator, the lines
that make drives of null_blk, and the machines that torture draws. A drive that is refused is known by what is
said about it: a row names the tests that expect those words.

The page's other table, of kinds of drives and kernels, is what `scripts/lab drives` measured last: one script of
guest/ makes each kind of drive that a kernel has and uses it. A test of some of them expects the same.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..build import guest, kernels
from ..run import accel, machine, options, qemu, scripts
from ..run.outcome import Result
from ..util.base import ROOT, LabError, say, write_file
from . import tested, torture

TESTS = ROOT / "target/tests"
_TABLE, _END = "<!-- drives: scripts/lab report --readme -->", "<!-- end of drives -->"
_CELLS, _CELLS_END = "<!-- kinds: scripts/lab drives -->", "<!-- end of kinds -->"
MEASURED = TESTS / "drives.json"        # by kernel: its release, and what became of each kind of drive
KINDS_SCRIPT = "any_zoned_drive"
LOOSE = "dm-crypt", "xts", "zloop"      # modules that it loads
_NULL = "zone_capacity", "zone_size", "zone_max_open", "zone_nr_conv", "blocksize", "size", "zoned"
_SEEDS = 500        # of torture's boots: each is a drive
_MIB = 1 << 20


@dataclass(frozen=True)
class Drive:
    """What of a drive makes a difference to the target."""

    size: int
    zone: int
    capacity: int       # of a zone; all sizes are in bytes
    sector: int
    open: int           # zones that may be open, 0: any number
    meta: int           # bytes beside each block
    conventional: bool = False


@dataclass(frozen=True)
class Kind:
    """A row: drives that work."""

    words: str
    note: str
    has: Callable[[Drive], bool]


KINDS = (
    Kind("zones that can be written up to their size", "", lambda d: d.capacity == d.zone),
    Kind("zone capacity below zone size", "", lambda d: d.capacity < d.zone),
    Kind("zone capacity that is no multiple of 4096 bytes", "full zones are finished", lambda d: d.capacity % 4096 > 0),
    Kind("sectors of 4096 bytes", "", lambda d: d.sector == 4096),
    Kind("sectors of 512 bytes", "", lambda d: d.sector == 512),
    Kind("no limit of open zones", "", lambda d: d.open == 0),
    Kind("5 open zones or more", "", lambda d: d.open > 4),
    Kind("4 open zones", "lanes share zones", lambda d: d.open == 4),
    Kind("metadata of 16 bytes a block or more", "[headers go there](#drives-with-metadata)", lambda d: d.meta >= 16),
    Kind("less metadata", "headers are in blocks", lambda d: 0 < d.meta < 16),
    Kind("conventional zones (SMR hard disks)", "[left alone](#drives-with-conventional-zones)",
         lambda d: d.conventional),
    Kind("a smaller last zone", "left alone", lambda d: d.size % d.zone > 0),
)
# Drives that are refused: words of the message, and further ones that a test may expect.
REFUSED = (
    ("fewer than 4 open zones", "Device allows too few open zones", "3 open zones, expected 4 or more"),
    ("fewer than 9 zones", "usable zones, expected", ""),
    ("larger than 16 TiB less 8 GiB", "expected 16 TiB less 8 GiB at most", ""),
    ("not zoned", "not zoned, expected", "Device is not zoned"),
    ("host-aware (up to Linux 6.7, later not zoned)", "Device is host-aware", "host-aware, expected"),
)


def _bytes(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([KMG]?)", text).groups()  # type: ignore[union-attr]
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]


def _emulated(profile: str, device: dict[str, str]) -> Drive:
    if profile == options.STOCK:
        words = {"flash.size": str(qemu.STOCK_SIZE)} | qemu.STOCK_DEVICE | device
    else:
        words = qemu.profile_settings(profile) | device
    zone = _bytes(words["zoned.zone_size"])
    return Drive(_bytes(words["flash.size"]), zone, _bytes(words.get("zoned.zone_capacity", str(zone))),
                 int(words["logical_block_size"]), int(words.get("zoned.max_open", "0")), int(words.get("ms", "0")))


def _null_blk(body: str) -> Iterator[Drive]:
    """A drive for each line that calls null(), or that has words for a function that does."""
    said = re.search(r"for pair in (.*) \"\$@\"; do", (TESTS / "guest.sh").read_text())
    assert said
    usual = dict(pair.split("=") for pair in said[1].split())
    for line in body.splitlines():
        own = dict(re.findall(rf"\b({'|'.join(_NULL)})=(\d+)\b", line))
        if not own and not re.search(r"(?:^|[;\s])null \S", line):
            continue
        words = usual | own
        if int(words["zoned"]):
            zone = int(words["zone_size"])
            yield Drive(int(words["size"]) * _MIB, zone * _MIB, int(words.get("zone_capacity", zone)) * _MIB,
                        int(words["blocksize"]), int(words.get("zone_max_open", 0)), 0,
                        int(words.get("zone_nr_conv", 0)) > 0)


def of_tests() -> dict[str, set[Drive]]:
    """The drives of each script of guest/."""
    found: dict[str, set[Drive]] = {}
    for path in sorted(tested.FOLDER.glob("*.sh")):
        script = scripts.parse(path)
        profile = script.options["profile"]
        found[path.stem] = {*_null_blk(script.body)} if profile in (options.NONE, options.STOCK) else set()
        if profile != options.NONE:
            found[path.stem].add(_emulated(profile, script.options.get("device", {})))
    return found


def _of_torture() -> set[Drive]:
    return {_emulated("tlc", torture.shape(seed).device) for seed in range(1, _SEEDS + 1)}


def refusals() -> dict[str, list[str]]:
    """By what is refused, the tests that expect it."""
    tests = {path.stem: path.read_text() for path in [*tested.FOLDER.glob("*.sh"), *TESTS.glob("test_*.py")]}
    return {what: sorted(name for name, text in tests.items() if any(words and words in text for words in said))
            for what, *said in REFUSED}


def _size(number: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (_MIB, "MiB")):
        if number >= unit:
            return f"{number // unit} {name}"
    return f"{number >> 10} KiB"


def _lines() -> Iterator[str]:
    tests, cuts = of_tests(), _of_torture()
    yield from ("| the drive | works | tests in a guest | power cuts | |", "|---|---|---|---|---|")
    for kind in KINDS:
        count = sum(any(map(kind.has, drives)) for drives in tests.values())
        yield f"| {kind.words} | yes | {count} | {'yes' if any(map(kind.has, cuts)) else 'no'} | {kind.note} |"
    for what, names in refusals().items():
        yield f"| {what} | refused | {', '.join(f'`{name}`' for name in names) or 'none'} | | |"
    every = set().union(cuts, *tests.values())
    yield from ("", f"These drives hold {_size(min(d.size for d in every))} to {_size(max(d.size for d in every))}, in "
                f"zones of\n{_size(min(d.zone for d in every))} to {_size(max(d.zone for d in every))}.")


def update_page(text: str) -> str:
    """The page as the tests declare their drives, and as kinds of drives were measured."""
    before, rest = text.split(_TABLE)
    text = f"{before}{_TABLE}\n\n" + "\n".join(_lines()) + f"\n\n{rest[rest.index(_END):]}"
    before, rest = text.split(_CELLS)
    measured = json.loads(MEASURED.read_text())
    return f"{before}{_CELLS}\n\n" + "\n".join(_cells(measured)) + f"\n\n{rest[rest.index(_CELLS_END):]}"


# Kinds of drives, each under each kernel

def pushed(kernel: str) -> list[Path]:
    """What the script needs of a kernel."""
    return guest.loose_modules(kernels.get(kernel), LOOSE)


def became(result: Result) -> dict[str, str]:
    """What became of each kind of drive, as the script says."""
    return dict(re.findall(r"^kind (.+) \| (.+)$", result.output, re.M))


def _note(said: str, notes: list[str]) -> str:
    """A cell; its reason is in the list of notes."""
    word, _, reason = said.partition(": ")
    if not reason:
        return word
    if reason not in notes:
        notes.append(reason)
    return f"{word} ({notes.index(reason) + 1})"


def _cells(measured: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[str]:
    names = dict.fromkeys(name for of in measured.values() for name in of["kinds"])
    notes: list[str] = []
    cells = {name: [_note(of["kinds"].get(name, "not tried"), notes) for of in measured.values()] for name in names}
    rows = [f"| {name} | {' | '.join(row)} |" for name, row in cells.items()]
    every = [said for of in measured.values() for said in of["kinds"].values()]
    works, refused = (sum(said.startswith(word) for said in every) for word in ("works", "refused"))
    yield from (f"Of {len(every)} that were tried, {works} work and {refused} are refused, with the reason. For "
                f"{len(every) - works - refused}\nthe kernel has no such drive.", "",
                "| the drive | " + " | ".join(str(of["release"]) for of in measured.values()) + " |",
                "|---|" + "---|" * len(measured), *rows, "",
                *(f"{number}. {reason}" for number, reason in enumerate(notes, 1)))


def _measure(args: argparse.Namespace) -> int:
    script = scripts.parse(tested.FOLDER / f"{KINDS_SCRIPT}.sh")
    measured = json.loads(args.out.read_text()) if args.out.exists() else {}
    for kernel in args.kernels:
        chosen = options.Options(**script.options | {
            "kernel": kernel, "push": [TESTS / "guest.sh", guest.program("blocks", TESTS), *pushed(kernel)]})
        result = machine.run(scripts.command(script), chosen, accel=accel.choose(), on_output=print)
        if not result.ok:
            raise LabError(f"kernel {kernel}: {result.failure or f'exit status {result.status}'}")
        measured[kernel] = {"release": kernels.get(kernel).release, "kinds": became(result)}
        write_file(args.out, json.dumps({name: measured[name] for name in kernels.SERIES if name in measured},
                                        indent=1) + "\n")
    say("scripts/lab report --readme writes the table")
    return 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`drives` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "drives", help="try each kind of zoned drive that a kernel has, under each kernel",
        description="Makes each kind of drive in a guest and uses it: format, GC, discards, a stop, a cut.")
    parser.add_argument("kernels", nargs="*", default=kernels.SERIES, metavar="KERNEL",
                        help=f"of {', '.join(kernels.SERIES)}; default: all of them")
    parser.add_argument("--out", type=Path, default=MEASURED, metavar="FILE", help="where the results are kept")
    parser.set_defaults(function=_measure)

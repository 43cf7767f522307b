# SPDX-License-Identifier: GPL-2.0
"""`lab night`: the heavier forms of the tests, for which neither `make test` nor continuous integration has time."""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..util.base import BUILD, ROOT, LabError, say

LOGS = BUILD / "night"


@dataclass(frozen=True)
class Part:
    """A command of the lab; {seed} is the night's seed."""

    name: str
    shows: str
    command: str


# The one list of what a night does; docs/lab/torture.md shows it.
PARTS = (
    Part("cuts", "power cuts", "torture --cuts 5000 --seed {seed}"),
    Part("cuts-metadata", "power cuts of a drive that keeps headers in metadata",
         "torture --cuts 1000 --device ms=16 --seed {seed}"),
    Part("cuts-drives", "power cuts of a stripe over two drives", "torture --drives 2 --cuts 1000 --seed {seed}"),
    Part("cuts-kasan", "power cuts under KASAN and lockdep", "torture --kernel kasan --cuts 200 --seed {seed}"),
    Part("cuts-kcsan", "power cuts under the detector of data races",
         "torture --kernel kcsan --cuts 200 --seed {seed}"),
    Part("allocations", "each allocation fails once", "torture --kernel kasan --allocations --seed {seed}"),
    Part("storm", "a device is overwritten while reads, writes and zones fail", "torture --storm 50 --seed {seed}"),
    Part("damage", "damaged media", "torture --cuts 50 --damage 200 --seed {seed}"),
    Part("crafted", "media with one wrong field, under KASAN",
         "torture --kernel kasan --cuts 4 --crafted 245 --seed {seed}"),
    Part("bugs", "each planted bug is found", "torture --bugs"),
    Part("mutants", "assertions notice negated conditions", "mutants --least 15"),
    Part("fuzz", "fuzzers of all that reads media", "fuzz --seconds 7200"),
    Part("tests-kasan", "the target's tests under KASAN", "test --kernel kasan target/tests"),
    Part("tests-current", "the target's tests on the newest kernel", "test --kernel current target/tests"),
    Part("own-machine", "a Debian with ssh, and RocksDB on its drive, survive a power cut",
         "test --night scripts/tests/test_vm.py"),
    Part("machines", "a mirror across two machines survives twenty kills",
         "test --night target/tests/test_machines.py"),
    Part("shuffle", "all tests in another order", "test --shuffle {seed}"),
)


def words(part: Part, seed: int) -> list[str]:
    """What the lab is given for a part."""
    return part.command.format(seed=seed).split()


def _lab(command: Sequence[str], log: Path) -> int:
    """Run a command of the lab; its output goes to a file."""
    with open(log, "w") as out:
        return subprocess.run([sys.executable, "-B", ROOT / "scripts/lab", *command], stdout=out,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL).returncode


def night(parts: Sequence[Part], seed: int) -> int:
    """Do all parts, whatever comes of each; 1 if any failed."""
    LOGS.mkdir(parents=True, exist_ok=True)
    failed = []
    for part in parts:
        command, log, began = words(part, seed), LOGS / f"{part.name}.log", time.monotonic()
        say(f"{part.name}: {part.shows}: lab {' '.join(command)}")
        status = _lab(command, log)
        if status:
            failed.append(part.name)
        print(f"{part.name:14} {'FAILED' if status else 'ok':6} {(time.monotonic() - began) / 60:6.1f} min  {log}",
              flush=True)
    print(f"night: {len(parts) - len(failed)} of {len(parts)} parts are well"
          + (f"; failed: {', '.join(failed)}" if failed else ""), flush=True)
    return int(bool(failed))


def table() -> str:
    """The parts as docs/lab/torture.md shows them."""
    return "\n".join(["| part | shows | `scripts/lab ...` |", "|---|---|---|",
                      *(f"| {part.name} | {part.shows} | `{part.command.replace('{seed}', 'SEED')}` |"
                        for part in PARTS)])


def _night(args: argparse.Namespace) -> int:
    known = {part.name: part for part in PARTS}
    if unknown := [name for name in args.parts if name not in known]:
        raise LabError(f"no part '{unknown[0]}': there are {', '.join(known)}")
    return night([known[name] for name in args.parts] or PARTS, args.seed)


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`night` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "night", help="run the heavier forms of all tests, for hours",
        description="Runs these one after the other, with their output in build/night: "
        + "; ".join(f"{part.name}: {part.shows}" for part in PARTS) + ".")
    parser.add_argument("--seed", type=int, default=1, metavar="S",
                        help="seed of cuts and orders: another one each night finds more; default %(default)s")
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these; default: all")
    parser.set_defaults(function=_night)

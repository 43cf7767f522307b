# SPDX-License-Identifier: GPL-2.0
"""The simulator of policies: the target's own placement and victim choice on a drive without time.

`lab simulate NAME=VALUE ...` runs it once; `lab simulate --compare` runs loads against policies and draws the figure.
Its sources are in target/simulator; what it computes follows from its words alone.
"""

import argparse
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..run import firmware, machine, replay
from ..util.base import BUILD, ROOT, LabError, digest, fresh_folder, lock, logged, output

Found = dict[str, Any]

SOURCE = ROOT / "target"
FOLDER = ROOT / "results/policies"
DRIVE = ("zones=512", "capacity=768", "lanes=8")
LOADS = ("uniform", "zipf:0.8", "zipf:0.99", "zipf:1.2", "zipf:1.4", "hot:90/10", "hot:80/20", "shift:90/10")
POLICIES = {
    "one stream, greedy": ("placement=none", "gc_policy=greedy"),
    "hot-cold, greedy": ("placement=hot-cold", "gc_policy=greedy"),
    "hot-cold, cost-benefit": ("placement=hot-cold", "gc_policy=cost-benefit"),
    "by-age, cost-benefit": ("placement=by-age", "gc_policy=cost-benefit"),
    "by-life, cost-benefit": ("placement=by-life", "gc_policy=cost-benefit"),
    "SepBIT, cost-benefit": ("placement=sepbit", "gc_policy=cost-benefit"),
    "rates known, cost-benefit": ("placement=known", "gc_policy=cost-benefit"),
}
LIFE = ("zones=256", "capacity=256", "buffer_entries=64", "age=0", "writes=1000")
LIVES = ("zipf:1.2", "hot:99.9999/50")
LEVELLING = {"levelled": (), "not levelled": ("wear_interval=0",)}
WEAR_MARKS = ("least", "5%", "95%", "most")


def build() -> Path:
    """The simulator of these sources, built where it is not."""
    sources = [SOURCE / "Makefile", *sorted(path for folder in ("lib", "format", "policy", "tool", "simulator")
                                            for path in (SOURCE / folder).glob("*.[ch]"))]
    folder = BUILD / "simulator" / digest(*sources)
    with lock("simulator"):
        if not folder.exists():
            with fresh_folder(folder) as part:
                logged(["make", "-s", "-C", SOURCE, f"BUILD={part}", "simulator"], BUILD / "log/simulator.log")
    return folder / "target/simulate"


def _run(program: Path, words: Sequence[str]) -> Found:
    found: Found = json.loads(output([program, *words]))
    return found


def simulate(*words: str) -> Found:
    """One run."""
    return _run(build(), words)


def _writes(load: str) -> tuple[str, ...]:
    """Long enough for what the buffer lets through."""
    return ("age=16", "writes=8") if load in ("zipf:1.2", "zipf:1.4") else ("age=8", "writes=4")


def compare(drive: tuple[str, ...] = DRIVE) -> list[Found]:
    """Loads against policies, and lives of a drive."""
    program = build()
    runs: list[tuple[Found, tuple[str, ...]]] = []
    for load in LOADS:
        runs += [({"load": load, "policy": name}, (*drive, *_writes(load), f"load={load}", *words))
                 for name, words in POLICIES.items()]
    for load in LIVES:
        runs += [({"load": load, "life": name}, (*LIFE, f"load={load}", *words)) for name, words in LEVELLING.items()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda run: _run(program, run[1]), runs))
    return [{**of, "words": " ".join(words), **one} for (of, words), one in zip(runs, found, strict=True)]


def table(found: list[Found]) -> str:
    """What GC moves for each stored block, and the limit of the same drive."""
    rows = [["load", *POLICIES, "limit"]]
    for load in LOADS:
        ones = {one["policy"]: one for one in found if one["load"] == load and "policy" in one}
        rows.append([load, *(f"{ones[policy]['amplification']:.3f}" for policy in POLICIES),
                     f"{ones['by-life, cost-benefit']['limit']:.3f}"])
    lives = [["life of 1,000 drive writes", *WEAR_MARKS, "write amplification"]]
    lives += [[f"{one['load']}, {one['life']}", *(f"{x:.3f}" for x in one["wear"]), f"{one['amplification']:.3f}"]
              for one in found if "life" in one]
    return "\n\n".join("\n".join("| " + " | ".join(row) + " |" for row in (part[0], ["---"] * len(part[0]), *part[1:]))
                       for part in (rows, lives))


def draw(found: list[Found], path: Path) -> None:
    """Write amplification by load and policy, and erase counts over a life."""
    from ..exp import figures  # matplotlib is slow to load

    figure, axes = figures.panels(2, columns=1, height=3.4)
    measured = [figures.Bars(policy, [one["amplification"] for load in LOADS for one in found
                                      if one.get("policy") == policy and one["load"] == load]) for policy in POLICIES]
    ours = "by-life, cost-benefit"
    limit = figures.Bars("limit of placement", [one["limit"] for load in LOADS for one in found
                                                if one.get("policy") == ours and one["load"] == load])
    figure.set_size_inches(figures.PAGE, 7.6)
    figures.bars(axes[0], LOADS, [*measured, limit], y="write amplification",
                 title="of a stored block, by load", columns=4)
    figures.bars(axes[1], WEAR_MARKS, [figures.Bars(f"{one['load']}, {one['life']}", one["wear"])
                                       for one in found if "life" in one],
                 y="erases over the mean", limit=1.1, limit_label="1.1", columns=3,
                 title="erases of a zone, after a life of 1,000 drive writes")
    figures.save(figure, path)


def _simulate(args: argparse.Namespace) -> int:
    if not args.compare:
        print(json.dumps(simulate(*args.words), indent=1))
        return 0
    if args.words:
        raise LabError("--compare has words of its own, expected none")
    found = compare()
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "policies.json").write_text(json.dumps(found, indent=1) + "\n")
    draw(found, FOLDER / "figure.svg")
    print(table(found))
    return 0


def _firmware(args: argparse.Namespace) -> int:
    if any(word.startswith("trace=") for word in args.words):
        with machine.folder() as folder:
            print(json.dumps(replay.run(args.words, folder), indent=1))
        return 0
    print(output([firmware.build(), *args.words]), end="")
    return 0


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`simulate` and `firmware` on the command line of scripts/lab."""
    parser = commands.add_parser("simulate", help="try the target's policies on a drive without time")
    parser.add_argument("words", nargs="*", metavar="NAME=VALUE", help="see target/simulator/simulate.c")
    parser.add_argument("--compare", action="store_true", help="run all loads with all policies, into results/policies")
    parser.set_defaults(function=_simulate)
    inside = commands.add_parser("firmware", help="try a drive with its FTL inside under a load or a trace, in seconds")
    inside.add_argument("words", nargs="*", metavar="NAME=VALUE",
                        help="see emulator/simulator/firmware.c; with trace=FILE docs/lab/traces.md")
    inside.set_defaults(function=_firmware)

# SPDX-License-Identifier: GPL-2.0
"""Do the target's assertions notice a wrong program? `lab mutants`.

A mutant is the target with one condition negated. A seed chooses conditions, all with the same chance, among those that
an assertion guards, in the files whose state all others rely on. An assertion guards a condition if it comes later in
the same function, and names a field or a variable that the condition names, or that its statement changes. Left out is
what assertions are not for: what a device or its media said, which ends in an error; a signal; and functions that only
set up or free memory. Each mutant is built with its assertions on, and has to survive some power cuts (torture.py). The
table says what ended it: an assertion, another report of the kernel, the oracle, a load that did not work; or that
nothing did. It takes about half a minute of a processor for each, so it runs on request only.
"""

import argparse
import json
import queue
import random
import re
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path

from ..build import kernels, target
from ..util import pool
from ..util.base import BUILD, LabError, say, update_file, write_file
from . import layers, torture

FILES = [f"{file}.c" for file in layers.WELL_CHECKED]
BOOTS = 2                   # with seeds of their own, until one ends the mutant
SECONDS = 40                # that a mutant takes
ASSERTION = "dm-mtftl: expected "
WORD = re.compile(r"[A-Za-z_]\w*")
# They name what the other words are of: nothing is said of themselves.
OBJECTS = set("ftl config zone zones unit lane map stream streams ring slot place bio rec record info ckpts sb budget "
              "i nr lba index READ_ONCE WRITE_ONCE u32 u64 le64_to_cpu le32_to_cpu".split())
# Of the device, of a signal, or an error.
OUTSIDE = re.compile(r"mtftl_interrupted|return (?:-E|r;)|\br = -E|mtftl_zone_mgmt|mtftl_rw_|_parse\(|scan_unit")


@dataclass(frozen=True)
class Condition:
    """A condition in a file, by the offsets of its first character and of the one behind it."""

    file: str
    line: int
    function: str
    begin: int
    end: int
    text: str


def _blank(text: str) -> str:
    """The same length, without comments and strings."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def _functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Names of functions, and where their bodies begin and end."""
    for found in re.finditer(r"^(?!\s|#)[^\n;={}#]*?\b(\w+)\([^;{}]*\)\n\{\n", text, re.M):
        yield found[1], found.end(), text.index("\n}\n", found.end() - 1)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    raise LabError("a parenthesis has no end")


def _statement(bare: str, closing: int) -> str:
    """What is done if a condition that ends there holds."""
    begin = closing + 1 + re.match(r"\s*", bare[closing + 1:]).end()  # type: ignore[union-attr]
    if bare[begin] != "{":
        return bare[begin:bare.index(";", begin) + 1]
    depth = 0
    for at in range(begin, len(bare)):
        depth += (bare[at] == "{") - (bare[at] == "}")
        if not depth:
            return bare[begin:at + 1]
    raise LabError("a brace has no end")


def _asserted(bare: str) -> set[str]:
    """Fields and variables that assertions name."""
    openings = [found.end() - 1 for found in re.finditer(r"mtftl_assert\(", bare)]
    return {word for at in openings for word in WORD.findall(bare[at:_closing(bare, at)])} - OBJECTS


def _guarded(condition: str, statement: str, later: str) -> bool:
    """Does an assertion in what follows say what the condition, or its statement, is about?"""
    if OUTSIDE.search(condition + statement):
        return False
    changed = re.findall(r"(\w+)(?:\[\w+\])?\s*(?:[-+|&]?=(?!=)|\+\+|--)|WRITE_ONCE\([^,]*?(\w+),", statement)
    words = {*WORD.findall(condition), *(word for pair in changed for word in pair if word)}
    return bool(words & _asserted(later))


def conditions(file: str, text: str) -> list[Condition]:
    """Those of `if` and `while` that an assertion guards."""
    found = []
    bare = _blank(text)
    for function, begin, end in _functions(bare):
        if function.endswith(("_alloc", "_free")):
            continue
        for word in re.finditer(r"\b(?:if|while) \(", bare[begin:end]):
            opening = begin + word.end() - 1
            closing = _closing(bare, opening)
            if not _guarded(bare[opening:closing], _statement(bare, closing), bare[closing:end]):
                continue
            found.append(Condition(file, text.count("\n", 0, opening) + 1, function, opening + 1, closing,
                                   " ".join(text[opening + 1:closing].split())))
    return found


def negated(condition: Condition, text: str) -> str:
    """The file with the condition negated."""
    return (text[:condition.begin] + "!(" + text[condition.begin:condition.end] + ")" + text[condition.end:])


def choose(count: int, seed: int) -> list[Condition]:
    """Conditions of the target, in the order in which a seed draws them."""
    every = [condition for file in FILES for condition in conditions(file, (target.SOURCE / file).read_text())]
    if count > len(every):
        raise LabError(f"there are {len(every)} conditions, expected {count} at least")
    return random.Random(seed).sample(every, count)


def end_of(boot: torture.Boot) -> tuple[str, str]:
    """What kind of check ended a boot, and its words; ("", "") if it did not end early."""
    if not boot.status:
        return "", ""
    asserted = re.search(re.escape(ASSERTION) + "(.*)", boot.report)
    if asserted:
        return "assertion", asserted[1].strip()
    lines = [line.strip() for line in boot.report.splitlines() if line.strip()]
    for kind, begins in (("oracle", "VIOLATION"), ("hang", "HANG")):
        for line in lines:
            if line.startswith(begins):
                return kind, line
    for line in lines:
        if line.startswith("the guest"):
            return "kernel", line
    return "load", lines[-2] if len(lines) > 1 else ""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    place: str
    condition: str
    ended_by: str
    words: str
    cuts: int


def _build(kernel: kernels.Kernel, folder: Path, condition: Condition) -> Path:
    """dm-mtftl.ko of a mutant; only what differs from the one before in the same folder is compiled."""
    for source in [*target.module_sources(), target.SOURCE / "Kbuild"]:
        name = str(source.relative_to(target.SOURCE))
        text = source.read_text()
        update_file(folder / name, (negated(condition, text) if name == condition.file else text).encode())
    target.build_module(kernel, folder, asserts=True)
    return folder / "dm-mtftl.ko"


def _try(condition: Condition, args: argparse.Namespace, folders: "queue.Queue[Path]") -> Verdict:
    kernel = kernels.get(args.kernel)
    folder = folders.get()
    place, cuts = f"target/{condition.file}:{condition.line} {condition.function}()", 0
    kind, words = "", ""
    try:
        module = _build(kernel, folder, condition)
        for boot_seed in range(args.seed, args.seed + BOOTS):
            try:
                boot = torture.run_boot(boot_seed, args.cuts, args, module)
            except LabError as e:
                kind, words = "hang", str(e).splitlines()[-1]
            else:
                cuts += boot.cuts
                kind, words = end_of(boot)
            if kind:
                break
    except LabError as e:
        kind, words = "compiler", str(e).splitlines()[0]
    finally:
        folders.put(folder)
    return Verdict(place, condition.text, kind or "nothing", words[:200], cuts)


def table(verdicts: list[Verdict]) -> str:
    """How many were ended by what, most first."""
    kinds = [verdict.ended_by for verdict in verdicts]
    return ", ".join(f"{kinds.count(kind)} by {kind}" for kind in sorted(set(kinds), key=lambda k: -kinds.count(k)))


def _mutants(args: argparse.Namespace) -> int:
    chosen = choose(args.count, args.choice)
    if args.list:
        for condition in chosen:
            print(f"target/{condition.file}:{condition.line} {condition.function}(): {condition.text}")
        return 0
    args.device, args.clock, args.cpus, args.verbose, args.check_every = "", "virtual", 0, False, 5
    target.need_module(kernels.get(args.kernel))
    folders: queue.Queue[Path] = queue.Queue()
    for number in range(args.jobs):
        folder = BUILD / f"mutants/{kernels.get(args.kernel).key}/{number}"
        folder.mkdir(parents=True, exist_ok=True)
        folders.put(folder)
    verdicts: dict[Condition, Verdict] = {}

    def done(job: pool.Job[Verdict], future: "Future[Verdict]", left: str) -> None:
        verdict = future.result()
        verdicts[chosen[int(job.name)]] = verdict
        say(f"{verdict.place}: {verdict.ended_by} {verdict.words}; {left}")
        if args.json:
            rows = [verdicts[condition] for condition in chosen if condition in verdicts]
            write_file(args.json, json.dumps({
                "choice": args.choice, "seed": args.seed, "cuts": args.cuts, "kernel": kernels.get(args.kernel).release,
                "commit": torture.commit(), "ended": table(rows),
                "mutants": [asdict(row) for row in rows]}, indent=1) + "\n")

    def job(number: int, condition: Condition) -> "pool.Job[Verdict]":
        return pool.Job(str(number), lambda: _try(condition, args, folders), SECONDS)

    pool.side_by_side([job(number, condition) for number, condition in enumerate(chosen)], args.jobs, done)
    print(f"{len(chosen)} mutants: {table(list(verdicts.values()))}")
    return 0 if sum(v.ended_by == "assertion" for v in verdicts.values()) >= args.least else 1


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`mutants` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "mutants", help="negate conditions of the target, and see whether its assertions notice",
        description="Negates one condition of the target at a time, makes power cuts with assertions on, and says "
        "what noticed. Takes half a minute of a processor for each.")
    parser.add_argument("--count", type=int, default=20, metavar="N", help="mutants; default %(default)s")
    parser.add_argument("--choice", type=int, default=1, metavar="S",
                        help="seed that chooses the conditions; default %(default)s")
    parser.add_argument("--seed", type=int, default=1, metavar="S",
                        help="seed of the first guest of each mutant; default %(default)s")
    parser.add_argument("--cuts", type=int, default=12, metavar="N",
                        help="power cuts that each guest makes; default %(default)s")
    parser.add_argument("--least", type=int, default=0, metavar="N",
                        help="fail unless assertions end this many mutants; default %(default)s")
    parser.add_argument("--kernel", default=kernels.DEFAULT, metavar="6.12|6.1|current|PATH",
                        help="kernel of the guests; default %(default)s")
    parser.add_argument("--timeout", type=float, default=600, metavar="S",
                        help="seconds of the host's clock that one guest may take; default %(default)s")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="guests side by side; default %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts, one by one")
    parser.add_argument("--list", action="store_true", help="only print the conditions")
    parser.set_defaults(function=_mutants)

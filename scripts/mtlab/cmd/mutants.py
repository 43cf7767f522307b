# SPDX-License-Identifier: GPL-2.0
"""Do the target's assertions, and its tests, notice a wrong program? `lab mutants`.

A mutant is the target with one bug, which planted.py makes. `lab mutants` takes negated conditions. A seed chooses
them, all with the same chance, among those that an assertion guards, in the files whose state all others rely on. An
assertion guards a condition if it comes later in the same function, and names a field or a variable that the condition
names, or that its statement changes. Left out is what assertions are not for: what a device or its media said, which
ends in an error; a signal; and functions that only set up or free memory. Each mutant is built with its assertions on,
and has to survive some power cuts (torture.py). The table says what ended it: an assertion, another report of the
kernel, the oracle, a load that did not work; or that nothing did. It takes about half a minute of a processor for each,
so it runs on request only.

With --any the seed chooses among bugs of all kinds, in the files that no program of the host runs. With --host a mutant
goes to the host's programs instead of a guest: see hostmutants.py.
"""

import argparse
import functools
import json
import queue
import random
import re
import time
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path

from ..build import kernels, target
from ..util import pool
from ..util.base import BUILD, LabError, digest, say, update_file, write_file
from . import hostmutants, hosttests, layers, torture
from .planted import Planted, blank, closing, functions, plants

FILES = [f"{file}.c" for file in layers.WELL_CHECKED]
KEPT = BUILD / "mutants/guest"
COUNT = 20                  # mutants, unless it is said
BOOTS = 2                   # with seeds of their own, until one ends the mutant
SECONDS = 40                # that a mutant takes
ASSERTION = "dm-mtftl: expected "
WORD = re.compile(r"[A-Za-z_]\w*")
# They name what the other words are of: nothing is said of themselves.
OBJECTS = set("ftl config zone zones unit lane map stream streams ring slot place bio rec record info ckpts sb budget "
              "i nr lba index READ_ONCE WRITE_ONCE u32 u64 le64_to_cpu le32_to_cpu".split())
# Of the device, of a signal, or an error.
OUTSIDE = re.compile(r"mtftl_interrupted|return (?:-E|r;)|\br = -E|mtftl_zone_mgmt|mtftl_rw_|_parse\(|scan_unit")


def _statement(bare: str, end: int) -> str:
    """What is done if a condition that ends there holds."""
    begin = end + 1 + re.match(r"\s*", bare[end + 1:]).end()  # type: ignore[union-attr]
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
    return {word for at in openings for word in WORD.findall(bare[at:closing(bare, at)])} - OBJECTS


def _guarded(condition: str, statement: str, later: str) -> bool:
    """Does an assertion in what follows say what the condition, or its statement, is about?"""
    if OUTSIDE.search(condition + statement):
        return False
    changed = re.findall(r"(\w+)(?:\[\w+\])?\s*(?:[-+|&]?=(?!=)|\+\+|--)|WRITE_ONCE\([^,]*?(\w+),", statement)
    words = {*WORD.findall(condition), *(word for pair in changed for word in pair if word)}
    return bool(words & _asserted(later))


def conditions(file: str, text: str) -> list[Planted]:
    """Negated conditions of `if` and `while` that an assertion guards."""
    found = []
    bare = blank(text)
    ends = {function: end for function, _, end in functions(bare)}
    for bug in plants(file, text):
        if bug.kind != "negated" or bug.function.endswith(("_alloc", "_free")) or bare[bug.begin - 1] != "(":
            continue
        if _guarded(bare[bug.begin:bug.end], _statement(bare, bug.end), bare[bug.end:ends[bug.function]]):
            found.append(bug)
    return found


def choose(count: int, seed: int, any_kind: bool = False) -> list[Planted]:
    """Bugs of the target, in the order in which a seed draws them."""
    if any_kind:
        on_host = set(hosttests.files())
        files = [str(path.relative_to(target.SOURCE)) for path in target.module_sources() if path.suffix == ".c"]
        every = [bug for file in files if file not in on_host
                 for bug in plants(file, (target.SOURCE / file).read_text())]
    else:
        every = [bug for file in FILES for bug in conditions(file, (target.SOURCE / file).read_text())]
    if count > len(every):
        raise LabError(f"there are {len(every)} bugs to plant, expected {count} at least")
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
    bug: str
    ended_by: str
    words: str
    cuts: int


def _build(kernel: kernels.Kernel, folder: Path, bug: Planted) -> Path:
    """dm-mtftl.ko of a mutant; only what differs from the one before in the same folder is compiled."""
    for source in [*target.module_sources(), target.SOURCE / "Kbuild"]:
        name = str(source.relative_to(target.SOURCE))
        text = source.read_text()
        update_file(folder / name, (bug.into(text) if name == bug.file else text).encode())
    target.build_module(kernel, folder, asserts=True)
    return folder / "dm-mtftl.ko"


def _try(bug: Planted, args: argparse.Namespace, folders: "queue.Queue[Path]") -> Verdict:
    kernel = kernels.get(args.kernel)
    folder = folders.get()
    place, cuts = f"target/{bug.file}:{bug.line}", 0
    kind, words = "", ""
    try:
        module = _build(kernel, folder, bug)
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
    return Verdict(place, bug.name, kind or "nothing", words[:200], cuts)


def table(verdicts: list[Verdict]) -> str:
    """How many were ended by what, most first."""
    kinds = [verdict.ended_by for verdict in verdicts]
    return ", ".join(f"{kinds.count(kind)} by {kind}" for kind in sorted(set(kinds), key=lambda k: -kinds.count(k)))


def _known(bug: Planted, args: argparse.Namespace) -> tuple[Path, Verdict | None]:
    """Where the verdict is kept, and the verdict if it is there."""
    text = (target.SOURCE / bug.file).read_text()
    key = digest(text, bug.name, kernels.get(args.kernel).key, json.dumps([args.seed, args.cuts]))
    path = KEPT / f"{key}.json"
    return path, Verdict(**json.loads(path.read_text())) if path.exists() else None


def _in_guests(chosen: list[Planted], verdicts: dict[Planted, Verdict], args: argparse.Namespace) -> None:
    """Try mutants, and add what came out to verdicts."""
    folders: queue.Queue[Path] = queue.Queue()
    for number in range(args.jobs):
        folder = BUILD / f"mutants/{kernels.get(args.kernel).key}/{number}"
        folder.mkdir(parents=True, exist_ok=True)
        folders.put(folder)
    until = time.monotonic() + args.seconds if args.seconds else float("inf")

    def work(bug: Planted) -> Verdict | None:
        return _try(bug, args, folders) if time.monotonic() < until else None

    def done(job: pool.Job[Verdict | None], future: "Future[Verdict | None]", left: str) -> None:
        bug, verdict = chosen[int(job.name)], future.result()
        if verdict:
            verdicts[bug] = verdict
            write_file(_known(bug, args)[0], json.dumps(asdict(verdict)) + "\n")
            say(f"{verdict.place} {verdict.bug}: {verdict.ended_by} {verdict.words}; {left}")

    pool.side_by_side([pool.Job(str(number), functools.partial(work, bug), SECONDS)
                       for number, bug in enumerate(chosen) if bug not in verdicts], args.jobs, done)


def _mutants(args: argparse.Namespace) -> int:
    if args.host:
        return hostmutants.run(args)
    chosen = choose(args.count or COUNT, args.choice, args.any)
    if args.list:
        for bug in chosen:
            print(f"target/{bug.file}:{bug.line} {bug.name}")
        return 0
    args.device, args.clock, args.cpus, args.verbose, args.check_every, args.drives = "", "virtual", 0, False, 5, 1
    args.schedule = None
    target.need_module(kernels.get(args.kernel))
    verdicts = {bug: verdict for bug in chosen if (verdict := _known(bug, args)[1])}
    _in_guests(chosen, verdicts, args)
    rows = [verdicts[bug] for bug in chosen if bug in verdicts]
    if args.json:
        write_file(args.json, json.dumps({
            "choice": args.choice, "seed": args.seed, "cuts": args.cuts, "kernel": kernels.get(args.kernel).release,
            "commit": torture.commit(), "ended": table(rows), "mutants": [asdict(row) for row in rows]},
            indent=1) + "\n")
    print(f"{len(rows)} mutants: {table(rows)}")
    return 0 if sum(row.ended_by == "assertion" for row in rows) >= args.least else 1


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`mutants` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "mutants", help="plant bugs in the target, and see whether assertions and tests notice",
        description="Plants one bug in the target at a time, and says what noticed it. By default it negates "
        "conditions, and makes power cuts with assertions on: half a minute of a processor for each. With --host it "
        "plants bugs of all kinds, and runs the host's tests: some seconds each. Verdicts are kept: the same command "
        "goes on where it was ended.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="with --host: only bugs of these, such as zone/scan.c")
    parser.add_argument("--host", action="store_true", help="run the programs of the host, and no guest")
    parser.add_argument("--any", action="store_true",
                        help="in guests: bugs of all kinds, in the files that no program of the host runs")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="mutants; default 20, with --host all")
    parser.add_argument("--seconds", type=float, default=0, metavar="S",
                        help="begin no mutant after this time; default: no limit")
    parser.add_argument("--without-cuts", action="store_true", help="with --host: judge no power cuts")
    parser.add_argument("--choice", type=int, default=1, metavar="S",
                        help="seed that chooses the bugs; default %(default)s")
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
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="mutants side by side; default %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result")
    parser.add_argument("--list", action="store_true", help="only print the bugs")
    parser.set_defaults(function=_mutants)

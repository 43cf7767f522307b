# SPDX-License-Identifier: GPL-2.0
"""`lab exp`, `lab demo` and `lab diff`: run experiments, show the first one, compare results."""

import argparse
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ..build import debian, emulator, guest, kernels, target
from ..exp.campaign import DURATIONS, Campaign, job_name, some
from ..exp.compare import differences
from ..exp.experiments import Experiment, load, names
from ..exp.results import RESULTS, Results, again, format_checks, format_table, write
from ..run import cluster
from ..util import pool
from ..util.base import BUILD, ROOT, LabError, guests_at_once, output, say, write_file

# Processor time of the demo's steps, from nothing, on a machine of two cores.
EMULATOR_SECONDS, GUEST_SECONDS, DEMO_SECONDS = 380, 150, 100
NEXT = """Three things to try next:
  make shell                               type commands in a guest with a zoned drive
  docs/tutorial.md                         cut the drive's power, and see what is left
  scripts/lab exp --quick peers            the same drive under dm-zoned, btrfs and F2FS"""


def costs(known: Mapping[str, float], at_once: int) -> list[list[str]]:
    """How many guests each experiment boots, and their processor time: what they last took, or as it expects."""
    rows, usual, unknown = [["experiment", "guests", "minutes", "of them expected", ""]], [], 0.0
    for experiment in map(load, names()):
        guests = [(job_name(experiment, run, seed), run.seconds)
                  for run in experiment.runs(False) for seed in range(run.seeds)]
        took = [known.get(name, seconds) for name, seconds in guests]
        expected = sum(seconds for name, seconds in guests if name not in known)
        rows.append([experiment.name, str(len(took)), *(f"{x / 60:.1f}" for x in (sum(took), expected)),
                     "long" if experiment.about.long else ""])
        if not experiment.about.long:
            usual += took
            unknown += expected / at_once
    rows.append(["all but the long", str(len(usual)), *(f"{x / 60:.0f}" for x in (
        pool.time_left(sorted(usual)[::-1], [], at_once), unknown)), f"{at_once} side by side"])
    return rows


def _exp(args: argparse.Namespace) -> int:
    if args.list:
        print(format_table(costs(pool.known(DURATIONS), args.jobs)))
        return 0
    debian.ensure("build", "emulator", "guest", "tool", "figures")
    chosen = [load(name) for name in args.names]
    if args.all:
        chosen = [one for one in map(load, names()) if args.long or not one.about.long]
    misses, failed = 0, []

    def folder(experiment: Experiment) -> Path:
        return Path(args.out or (BUILD / "quick" if args.quick else RESULTS)) / experiment.name

    def done(experiment: Experiment, results: Results) -> None:
        nonlocal misses
        write(experiment, results, folder(experiment))
        say(f"{experiment.name}: {len(results.checks) - len(results.misses)} of {len(results.checks)} checks hold, "
            f"in {folder(experiment)}")
        print(f"{results.title}\n\n{format_table(results.table)}\n\n{format_checks(results.checks)}\n", flush=True)
        misses += len(results.misses)

    if args.only:
        for experiment in chosen:
            print(format_table(experiment.table(some(experiment, args.only, args.quick, args.fresh))))
        return 0
    if args.again:
        for experiment in chosen:
            try:
                done(experiment, again(experiment, folder(experiment)))
            except LabError as e:
                say(f"{experiment.name} failed: {e}")
                failed.append(experiment.name)
    else:
        with cluster.connect(args.scheduler, args.twice) as elsewhere:
            failed = Campaign(chosen, args.quick, done, at_once=args.jobs, fresh=args.fresh, elsewhere=elsewhere).run()
    if failed:
        raise LabError(f"failed: {', '.join(failed)}")
    return 1 if misses and args.strict else 0


def _minutes(seconds: float) -> str:
    """How long that much of a processor's time takes on this machine."""
    return pool.in_words(max(seconds / (os.cpu_count() or 1), 1))


def _guest() -> None:
    kernel = kernels.get(kernels.DEFAULT)
    guest.tools()
    guest.modules(kernel)
    target.module(kernel)


def _demo(args: argparse.Namespace) -> int:
    debian.ensure("build", "emulator", "guest", "tool", "figures")
    steps: list[tuple[str, Callable[[], object], int]] = [
        ("build the emulator", emulator.build, EMULATOR_SECONDS), ("build kernel and tools of the guest", _guest,
                                                                   GUEST_SECONDS)]
    left = sum(seconds for *_, seconds in steps) + DEMO_SECONDS
    for number, (what, build, seconds) in enumerate(steps, 1):
        say(f"step {number} of {len(steps) + 1}: {what}; about {_minutes(left)} left, less if it is built already")
        build()
        left -= seconds
    say(f"step {len(steps) + 1} of {len(steps) + 1}: measure, in virtual time; about {_minutes(left)} left")

    def done(experiment: Experiment, results: Results) -> None:
        folder = BUILD / "demo"
        write_file(folder / "scaling.json", results.text())
        experiment.draw(results.samples, folder / "scaling")
        print(f"\n{results.title}\n\n{format_table(results.table)}\n\n{told(results)}\n"
              f"The figure: {folder}/scaling.svg\n\n{NEXT}")

    return 1 if Campaign([load("scaling")], True, done).run() else 0


def told(results: Results) -> str:
    """What the demo found, for people who see this for the first time."""
    iops = {s["line"]: s["iops"] for s in results.samples if s["users"] == 8}
    held, missed = len(results.checks) - len(results.misses), len(results.misses)
    return (
        "What was compared: programs (users) that write 4 KiB blocks at random to one flash drive, on a machine\n"
        "with 8 processors. `single` puts all their writes through one buffer and one thread, as flash translation\n"
        "layers used to. `multi` is dm-mtftl, with a buffer and a thread for each processor. `raw` is the bare\n"
        "drive, on which each user may only write in order. Each command of `single` and `multi` writes one\n"
        "block; by default dm-mtftl puts up to 32 into one (results/width/README.md).\n\n"
        f"The result: with 8 users dm-mtftl takes {iops['multi'] / 1000:.0f},000 writes a second, "
        f"{iops['multi'] / iops['single']:.1f} times as many as one\n"
        f"buffer and one thread, and {100 * iops['multi'] / iops['raw']:.0f}% of what the bare drive takes.\n\n"
        f"{held + missed} figures were predicted: {held} hold"
        + (f", {missed} do not; results/scaling/README.md says which.\n" if missed else ".\n"))


def _diff(args: argparse.Namespace) -> int:
    """Compare results with those of a commit; exit status 1 if a number changed."""
    changed = False
    for name in args.names or [p.parent.name for p in sorted(RESULTS.glob("*/results.json"))]:
        new = RESULTS / name / "results.json"
        if not new.exists():
            raise LabError(f"no results of '{name}'; scripts/lab exp {name} makes them")
        old = output(["git", "-C", ROOT, "show", f"{args.against}:{new.relative_to(ROOT)}"])
        for line in differences(json.loads(old), json.loads(new.read_text())):
            changed = True
            print(f"{name}: {line}")
    return int(changed)


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`exp`, `demo` and `diff` on the command line of scripts/lab."""
    exp = commands.add_parser("exp", help="run experiments", description="Runs experiments and keeps their results and "
                              f"figures below results/. There are: {', '.join(names())}.")
    exp.add_argument("names", nargs="*", metavar="NAME", help="files of scripts/experiments, without .py")
    exp.add_argument("--all", action="store_true", help="all of them, without those that take half an hour or more")
    exp.add_argument("--long", action="store_true", help="with --all: those too")
    exp.add_argument("--list", action="store_true", help="only tell which there are, and how long their guests take")
    exp.add_argument("--quick", action="store_true", help="a small form, below build/quick")
    exp.add_argument("--strict", action="store_true", help="exit status 1 when a check misses")
    exp.add_argument("--fresh", action="store_true",
                     help="boot all guests, even if an earlier run in virtual time had the same inputs")
    exp.add_argument("--again", action="store_true", help="judge and draw the existing results, without guests")
    exp.add_argument("--only", action="append", metavar="RUN",
                     help="boot this run alone, print what it measured, and write no results; may be repeated")
    exp.add_argument("--jobs", type=int, default=guests_at_once(), metavar="N",
                     help="guests side by side; default: the host's cores, as far as its memory goes")
    exp.add_argument("--out", type=Path, metavar="DIR", help="keep the results below this folder instead")
    cluster.add_options(exp)
    exp.set_defaults(function=_exp)
    demo = commands.add_parser("demo", help="compare a single- with a multi-threaded FTL, in a few minutes")
    demo.set_defaults(function=_demo)
    diff = commands.add_parser("diff", help="compare results with those of another commit")
    diff.add_argument("names", nargs="*", metavar="NAME", help="only these experiments; default: all")
    diff.add_argument("--against", default="HEAD", metavar="COMMIT", help="the other commit; default %(default)s")
    diff.set_defaults(function=_diff)

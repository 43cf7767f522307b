# SPDX-License-Identifier: GPL-2.0
"""Power cuts without boots, by the hundred thousand: `scripts/lab cuts`.

One guest runs a workload of torture.py, with a few cuts of its own. The emulator keeps a journal of all that changes
what a cut would leave. A program of the host, the judge (target/tests/cuts), goes through it: at each instant it makes
the states that a cut may leave, mounts them by the module's own recovery, and asks an oracle about each block. Some of
the states go into drives of a second guest, whose kernel must find the same version of each block.

What a boot came to is kept by a digest of its inputs, so a run goes on where it was ended.
"""

import argparse
import functools
import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path

from ..build import emulator, kernels, target
from ..run import cluster, machine
from ..run.options import PROFILES, Options
from ..util import pool
from ..util.base import LabError, digest, say, write_file
from . import history, judge, replay, shrink, torture

KEPT = judge.WORK / "kept"
DRIVES = 48                 # that one guest reads
DURATIONS = "cuts"
BOOT_SECONDS = 60           # that it takes to make the cuts of one boot
BUG_BOOTS = 6               # with seeds of their own, until one shows the bug
OF_ALL = "function", "json", "jobs", "boots", "scheduler", "twice"       # options that say nothing of one boot


@dataclass(frozen=True)
class Outcome:
    """What the cuts of one boot came to."""

    seed: int
    guest: dict[str, float]         # the workload's own summary
    judged: dict[str, float]        # the judge's
    read: int                       # states that a guest's kernel read, too
    read_blocks: int
    disagreed: int                  # blocks of which it found another version
    report: str                     # empty when all is well
    seconds: float                  # of the host's processors

    @property
    def cuts(self) -> int:
        return int(self.judged.get("cuts", 0))


def _profile() -> dict[str, str]:
    """Properties of the drive that torture's shapes change."""
    return dict(re.findall(r'^ +([\w.]+) = "(.*)"$', (PROFILES / "tlc.cfg").read_text(), re.M))


def read_in_guest(seed: int, blocks: int, images: Sequence[Path],
                  args: argparse.Namespace) -> tuple[list[bytes], float]:
    """The versions of all blocks of each image, as a guest's kernel recovers them; the processor time that it took."""
    kernel = kernels.get(args.kernel)
    module = target.module(kernel, asserts=True)
    program = torture.program()
    shape = torture.shape(seed).device | dict(item.split("=", 1) for item in args.device.split(",") if item)
    drives = []
    for number, image in enumerate(images[1:], start=2):
        wanted = _profile() | shape | {"nsid": str(number), "flash.media": str(image)}
        drives.append("-device " + ",".join(f"{key}={value}" for key, value in wanted.items()))
    options = Options(kernel=args.kernel, clock="virtual", cpus=1, memory="1G", profile="tlc", device=shape,
                      media=images[0], timeout=args.timeout, module=False, qemu=drives, pull=["read.*"],
                      push=[program, *filter(None, [module]), target.tool(), torture.fua_module(kernel)])
    result = machine.run(
        f"set -e; export PATH=$PATH:/root; insmod ./dm-mtftl.ko; insmod ./fuawrite.ko;"
        f" for i in $(seq {len(images)}); do"
        f" d=$(grep -lx $i /sys/block/nvme0n*/nsid); d=${{d%/nsid}};"
        f" ./{program.name} -s {seed} -r read.$i dm:/dev/${{d##*/}},{blocks}; done", options, accel="tcg")
    if not result.ok:
        raise LabError(f"seed {seed}: a guest cannot read what a cut left\n{result.output[-2000:]}"
                       f"{result.failure or ''}")
    return [result.files[name] for number in range(1, len(images) + 1) for name in result.files
            if name.endswith(f"read.{number}")], result.worked


@dataclass
class Compared:
    """What guests read of a sample of the states."""

    states: int
    disagreed: int = 0              # blocks of which they found another version
    first: str = ""                 # of these
    seconds: float = 0              # of the host's processors


def compare(seed: int, blocks: int, place: Path, args: argparse.Namespace) -> Compared:
    """Let guests read the sample."""
    images = sorted(place.glob("*.image"), key=lambda path: int(path.stem))
    compared = Compared(len(images))
    for at in range(0, len(images), DRIVES):
        share = images[at:at + DRIVES]
        versions, seconds = read_in_guest(seed, blocks, share, args)
        compared.seconds += seconds
        for image, found in zip(share, versions, strict=True):
            expected = image.with_suffix(".versions").read_bytes()
            if len(found) != len(expected):
                raise LabError(f"{image.name}: {len(found)} bytes of versions, expected {len(expected)}")
            wrong = [i for i in range(blocks) if found[4 * i:4 * i + 4] != expected[4 * i:4 * i + 4]]
            compared.disagreed += len(wrong)
            if wrong and not compared.first:
                compared.first = (f"state {image.stem}: block {wrong[0]} is version "
                                  f"{int.from_bytes(found[4 * wrong[0]:4 * wrong[0] + 4], 'little')} in the guest, "
                                  f"{int.from_bytes(expected[4 * wrong[0]:4 * wrong[0] + 4], 'little')} here")
    return compared


def _inputs(seed: int, args: argparse.Namespace) -> str:
    """A digest of all that the outcome of a boot is a function of."""
    kernel = kernels.get(args.kernel)
    module = target.module(kernel, asserts=True)
    return digest(str(emulator.build().parent.name), kernel.key, *filter(None, [module]), torture.program(),
                  judge.program(), json.dumps([seed, args.rounds, args.cuts, args.states, args.sample, args.device,
                                               args.cpus, args.schedule]), *map(str, _histories(seed, args)),
                  *([torture.linger_module(kernel)] if args.linger else []))


def _histories(seed: int, args: argparse.Namespace) -> list[history.History]:
    """What the guest runs; nothing: torture's own workload."""
    if args.draw:
        return [history.workload(seed * args.draw + number, shrink.DRAWN, args.linger, args.faults)
                for number in range(args.draw)]
    return list(history.enumerated(args.enumerate)) if args.enumerate else []


def _make(seed: int, args: argparse.Namespace) -> Outcome:
    """The cuts of one boot. What it worked is summed up from its parts, because other boots run side by side."""
    judge.WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{seed}-", dir=judge.WORK) as folder:
        place = Path(folder)
        histories = _histories(seed, args)
        boot = judge.journal(seed, args, None, place / "journal", histories)
        if boot.status:
            return Outcome(seed, boot.summary, {}, 0, 0, 0, f"the guest's own cuts: {boot.report}",
                           round(boot.worked, 1))
        verdict = judge.judged(judge.program(), seed, place / "journal", place, args.cuts, args.states,
                               ["-k", str(args.sample), "-o", place])
        summary, report = verdict.summary, verdict.report
        seconds = boot.worked + summary["processor"]
        if report:
            kept = judge.WORK / f"failed-{seed}"
            shutil.copy(place / "journal", kept)
            report += f"\nreplay: {judge.program()} -s {seed} -m {args.states} -a PLACE:STATE image {kept}"
        if verdict.violations:
            bench = shrink.Bench(args.kernel, None, target.SOURCE, seed, args.schedule, args.faults)
            shown = _shown(verdict.violations[0], kept, histories, seed, args)
            case = shrink.shrink(f"seed-{seed}", bench, shown)
            seconds += bench.worked
            report += f"\n{case.summary(f'seed-{seed}') if case else shrink.NOT_SHOWN}"
        blocks = int(summary["blocks"])
        compared = compare(seed, blocks, place, args)
    return Outcome(seed, boot.summary, summary, compared.states, compared.states * blocks, compared.disagreed,
                   "\n".join(filter(None, [report, compared.first])), round(seconds + compared.seconds, 1))


def _shown(violation: judge.Violation, journal: Path, histories: Sequence[history.History], seed: int,
           args: argparse.Namespace) -> shrink.Shown:
    """What shows a violation: a history, or the operations of a long run."""
    if violation.workload is not None:
        return shrink.Shown(seed, history=histories[violation.workload], linger=args.linger)
    return shrink.Shown(seed, history.of_journal(journal, violation.place), linger=args.linger)


def _boot(seed: int, args: argparse.Namespace) -> Outcome:
    """The same, unless it is kept."""
    key = _inputs(seed, args)
    path = KEPT / f"{key}.json"
    if path.exists():
        return Outcome(**json.loads(path.read_text()))
    outcome = _make(seed, args)
    _keep(outcome, key)
    return outcome


def _far(seed: int, args: argparse.Namespace) -> pool.Far[Outcome] | None:
    """How another machine makes the cuts of one boot; nothing if its outcome is kept here."""
    if (KEPT / f"{_inputs(seed, args)}.json").exists():
        return None
    own = argparse.Namespace(**{name: value for name, value in vars(args).items() if name not in OF_ALL})
    return pool.Far(_inputs_there(seed, own), functools.partial(_inputs_there, seed, own),
                    functools.partial(_boot, seed, own), functools.partial(_make, seed, own), _proof)


def _inputs_there(seed: int, args: argparse.Namespace) -> str:
    """A digest of all that differs among machines, too."""
    return digest(_inputs(seed, args), torture.booted(args.kernel))


def _proof(outcome: Outcome) -> object:
    """What the same boot gives each time, on each machine."""
    return asdict(outcome) | {"seconds": 0, "judged": outcome.judged | {"processor": 0}}


def _keep(outcome: Outcome, key: str) -> None:
    if not outcome.report:
        write_file(KEPT / f"{key}.json", json.dumps(asdict(outcome)) + "\n")


SPREAD = ("buffered", "program begun", "programmed", "reset begun", "erase begun", "reset ended", "finished",
          "acknowledged", "superblock")


def _summary(args: argparse.Namespace, outcomes: list[Outcome]) -> dict[str, object]:
    """What all boots came to so far."""
    def total(name: str) -> int:
        return sum(int(outcome.judged.get(name, 0)) for outcome in outcomes)

    cuts, seconds = total("cuts"), sum(outcome.seconds for outcome in outcomes)
    judging = sum(outcome.judged.get("processor", 0) for outcome in outcomes)
    return {
        "boots": len(outcomes), "cuts": cuts, "distinct": total("distinct"), "violations": total("violations"),
        "failed_boots": sum(bool(outcome.report) for outcome in outcomes), "mounts_cut": total("mounts_cut"),
        "instants": total("instants"), "states": total("states"), "workloads": total("workloads"),
        "by_instant": {name: total(name) for name in SPREAD},
        "guests_cuts": sum(int(outcome.guest.get("cuts", 0)) for outcome in outcomes),
        "compared_blocks": total("compared") + sum(outcome.read_blocks for outcome in outcomes),
        "read_by_guests": sum(outcome.read for outcome in outcomes),
        "disagreed_blocks": total("disagreed") + sum(outcome.disagreed for outcome in outcomes),
        "processor_seconds": round(seconds), "judges_processor_seconds": round(judging),
        "cuts_per_processor_hour": round(3600 * cuts / seconds) if seconds else 0,
        "judged_per_processor_hour": round(3600 * cuts / judging) if judging else 0,
        "kernel": kernels.get(args.kernel).release, "rounds": args.rounds, "cuts_each": args.cuts,
        "states_each": args.states, "sample": args.sample, "schedule": args.schedule, "commit": torture.commit(),
        "seeds": [outcome.seed for outcome in outcomes],
    }


def cuts(args: argparse.Namespace) -> int:
    """Make the cuts of all boots that were asked for, or take them from what is kept."""
    kernel = kernels.get(args.kernel)
    target.need_module(kernel)
    judge.program(), torture.program(), target.tool(), target.module(kernel, asserts=True), torture.fua_module(kernel)
    outcomes: list[Outcome] = []
    result = _summary(args, outcomes)

    def done(job: pool.Job[Outcome], future: "Future[Outcome]", left: str) -> None:
        nonlocal result
        outcome = future.result()
        if job.far:
            _keep(outcome, _inputs(outcome.seed, args))
        outcomes.append(outcome)
        outcomes.sort(key=lambda outcome: outcome.seed)
        result = _summary(args, outcomes)
        say(f"seed {outcome.seed}: {outcome.cuts} cuts, {outcome.read} read by a guest, "
            f"{int(outcome.judged.get('violations', 0))} violations; {result['cuts']} cuts so far; {left}")
        if args.json:
            write_file(args.json, json.dumps(result, indent=1) + "\n")

    with cluster.connect(args.scheduler, args.twice) as elsewhere:
        pool.side_by_side([pool.Job(f"seed {seed}", functools.partial(_boot, seed, args), BOOT_SECONDS,
                                    _far(seed, args) if elsewhere else None)
                           for seed in range(args.seed, args.seed + args.boots)], args.jobs, done, elsewhere)
    if result["workloads"]:
        print(f"{result['workloads']} workloads")
    print(f"{result['cuts']} power cuts, {result['distinct']} distinct, {result['violations']} violations; guests read "
          f"{result['read_by_guests']} of the states, {result['disagreed_blocks']} blocks were otherwise; "
          f"{result['cuts_per_processor_hour']} cuts an hour of one processor")
    for outcome in outcomes:
        if outcome.report:
            print(f"seed {outcome.seed}:\n{outcome.report}")
    return 1 if any(outcome.report for outcome in outcomes) else 0


def _look_for(name: str, args: argparse.Namespace) -> dict[str, object]:
    """Plant one bug in the guest's module and in the judge's recovery, make cuts until it is found, and shrink that."""
    module = torture.buggy_module(name, kernels.get(args.kernel))
    program = judge.program(module.parent)
    seconds, cuts_made, row = 0.0, 0, {"bug": name, "found_by": "", "boots": BUG_BOOTS, "says": ""}
    for seed in range(args.seed, args.seed + BUG_BOOTS):
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=judge.WORK) as folder:
            place = Path(folder)
            histories = _histories(seed, args)
            boot = judge.journal(seed, args, module, place / "journal", histories)
            verdict = judge.judged(program, seed, place / "journal", place, args.cuts, args.states)
            cuts_made += int(verdict.summary["cuts"])
            seconds += boot.worked + verdict.summary["processor"]
            by = "judge" if verdict.report else "guest" if boot.status else ""
            if not by:
                continue
            honest = _boot(seed, args)
            if honest.report:
                raise LabError(f"seed {seed}: the target fails without a planted bug, too:\n{honest.report}")
            said = next((line for line in (verdict.report or boot.report).splitlines() if line.strip()), "")
            row |= {"found_by": by, "boots": seed - args.seed + 1, "says": said[:200]}
            shown = (_shown(verdict.violations[0], place / "journal", histories, seed, args) if verdict.violations
                     else None)
        break
    row |= {"cuts": cuts_made, "seconds": round(seconds)}
    if not row["found_by"]:
        return row
    bench = shrink.Bench(args.kernel, module, module.parent, args.seed, args.schedule, args.faults)
    case = shrink.shrink(name, bench, shown or shrink.Shown(args.seed, linger=args.linger), name)
    return row | {"shrunk": case.numbers() if case else {}}


def bugs(args: argparse.Namespace) -> int:
    """Plant each bug and look for it."""
    names = args.bugs or torture.bug_names()
    rows: dict[str, dict[str, object]] = {}
    judge.WORK.mkdir(parents=True, exist_ok=True)

    def done(job: pool.Job[dict[str, object]], future: "Future[dict[str, object]]", left: str) -> None:
        row = rows[job.name] = future.result()
        say(f"{job.name}: {row['found_by'] or 'NOT FOUND'} after {row['cuts']} cuts, {row['seconds']} s"
            f"  {row['says']}, {row.get('shrunk') or 'not shrunk'}; {left}")
        if args.json:
            write_file(args.json, json.dumps({
                "planted": len(rows), "judge": sum(row["found_by"] == "judge" for row in rows.values()),
                "guest": sum(row["found_by"] == "guest" for row in rows.values()), "commit": torture.commit(),
                "bugs": [rows[name] for name in names if name in rows]}, indent=1) + "\n")

    pool.side_by_side([pool.Job(name, functools.partial(_look_for, name, args), BOOT_SECONDS) for name in names],
                      args.jobs, done)
    found = sum(bool(row["found_by"]) for row in rows.values())
    print(f"{found} of {len(rows)} planted bugs found")
    return 0


def _choose(args: argparse.Namespace) -> int:
    if args.replay:
        return replay.bisect(args.replay, args.bisect) if args.bisect else replay.replay(args.replay)
    if args.scheduler and args.bugs is not None:
        raise LabError("--scheduler: planted bugs are looked for on one machine, expected no --bugs")
    if (args.linger or args.faults) and not args.draw:
        raise LabError("--linger, --faults: drawn workloads have these, expected --draw N")
    if args.enumerate and args.draw:
        raise LabError("--draw: workloads are enumerated or drawn, expected no --enumerate")
    if args.enumerate:
        args.boots, args.cuts = 1, 0
    if args.enumerate or args.draw:
        args.rounds, args.cpus = 0, shrink.CPUS
        args.device = ",".join([judge.drive(args.faults), *filter(None, [args.device])])
    if args.bugs is not None:
        # Bugs are planted in what reads headers.
        args.device = ",".join(["ms=0", *filter(None, [args.device])])
        args.sample = 0
        return bugs(args)
    return cuts(args)


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`cuts` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "cuts", help="judge all that power cuts of a run would leave, without a boot each",
        description="Runs torture's workloads in guests that keep a journal of the flash, and judges on the host what "
        "a power cut at each instant would leave. Some of the states are read by a guest's kernel, too. What is done "
        "is kept: the same command goes on where it was ended.")
    parser.add_argument("--boots", type=int, default=4, metavar="N", help="guests; default %(default)s")
    parser.add_argument("--seed", type=int, default=1, metavar="S",
                        help="seed of the first guest, plus 1 for each further one; default %(default)s")
    parser.add_argument("--rounds", type=int, default=6, metavar="N",
                        help="cuts that each guest makes itself; default %(default)s")
    parser.add_argument("--cuts", type=int, default=5000, metavar="N",
                        help="cuts that are judged of each guest, drawn among all; 0: all; default %(default)s")
    parser.add_argument("--states", type=int, default=16, metavar="N",
                        help="states of one instant at most, drawn if there are more; default %(default)s")
    parser.add_argument("--sample", type=int, default=100, metavar="N",
                        help="of ten thousand states so many are read by a guest's kernel; default %(default)s")
    parser.add_argument("--enumerate", type=int, choices=(1, 2, 3), default=0, metavar="N",
                        help="all cuts of all workloads of up to N operations on the smallest drive, in one guest; 3: "
                        "of few kinds of operations")
    parser.add_argument("--draw", type=int, default=0, metavar="N",
                        help=f"cuts of N workloads of {shrink.DRAWN} operations each, which the seed draws, on the "
                        "smallest drive")
    parser.add_argument("--linger", action="store_true",
                        help="with --draw: threads stand still for a while at points in the target, which the seed "
                        "draws, and blocks are read")
    parser.add_argument("--faults", action="store_true",
                        help="with --draw: some writes fail, on a drive that has zones to lose")
    parser.add_argument("--kernel", default=kernels.DEFAULT, metavar="6.12|6.1|current|kasan|kcsan|PATH",
                        help="kernel of the guests; default %(default)s")
    parser.add_argument("--cpus", type=int, default=0, metavar="N",
                        help="processors of each guest; default: the seed chooses")
    torture.add_schedule(parser)
    parser.add_argument("--device", default="", metavar="KEY=VALUE,...",
                        help="properties of the device, over those that the seed chooses")
    parser.add_argument("--timeout", type=float, default=3600, metavar="S",
                        help="seconds of the host's clock that one guest may take; default %(default)s")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="boots side by side; default %(default)s")
    parser.add_argument("--bugs", nargs="*", metavar="NAME",
                        help="plant these bugs (default: all), each in a target of its own, and look for it")
    parser.add_argument("--replay", type=Path, metavar="FOLDER",
                        help="run again what a violation was shrunk to, and judge the one cut")
    parser.add_argument("--bisect", default="", metavar="COMMIT",
                        help="with --replay: name the commit after this one with which the target begins to lose")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result, as boots end")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what the guests print")
    cluster.add_options(parser)
    parser.set_defaults(function=_choose)

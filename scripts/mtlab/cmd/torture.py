# SPDX-License-Identifier: GPL-2.0
"""Power cuts by the thousand: `scripts/lab torture`.

One boot of a guest makes PER_BOOT cuts (target/tests/torture/ is the program that runs there). The
boot's seed decides everything: the shape of the flash device, the processors, what the workers do
and when the power goes. In virtual time the same seed gives the same run to the bit, so a finding
is replayed by the command that is printed with it.

Boots run side by side, a core each; what each brings is told and kept as it ends. The target's assertions are on: one
that fails is a warning of the guest's kernel, which ends the boot as a finding.

`--bugs` proves that the run finds bugs: each patch of target/tests/torture/bugs is applied to a
copy of the target, and must be found: by cuts, or else by the test that the patch names.
"""

import argparse
import functools
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..build import kernels, sourcekernel, target
from ..build.parts import part
from ..run import accel, cluster, machine
from ..run.options import NAMESPACE, Options
from ..util import pool
from ..util.base import BUILD, ROOT, LabError, digest, guests_at_once, lock, output, say, update_file, write_file

SOURCE = ROOT / "target/tests/torture"
BUGS = SOURCE / "bugs"
OF_A_BOOT = "kernel", "clock", "cpus", "drives", "device", "check_every", "timeout", "verbose", "schedule"  # options
PER_BOOT = 250
BUG_CUTS = 500
BUG_PER_BOOT = 50           # many machines: a bug may need the right one
BUG_SECONDS = 60            # that it takes to find one
DURATIONS = "torture"       # where pool keeps what a cut took
# How long a CPU stands still at most, and how long it runs between two such moments, in ns.
STALLS = (0, 0), (200_000, 20_000), (2_000_000, 100_000), (20_000_000, 500_000)
PERIODS = 100_000, 1_000_000, 10_000_000    # instructions for which priorities of CPUs are drawn, with --schedule
STATES = "/sys/kernel/tracing/events/mtftl/mtftl_zone_state"
# Zones to lose: each failed write costs one.
STORM_DEVICE = ("flash.size=48M,zoned.zone_size=1M,zoned.zone_capacity=1M,zoned.max_open=14,zoned.max_active=14,"
                "flash.block_pages=16,flash.program_pages=2,flash.buffer=1M")


@dataclass
class Boot:
    """What came out of one boot."""

    seed: int
    status: int
    summary: dict[str, float]
    report: str             # the violations, or why the guest failed; empty when all is well
    seconds: float
    output: str = field(repr=False)
    worked: float = 0       # seconds of the host's processors

    @property
    def cuts(self) -> int:
        return int(self.summary.get("cuts", 0))


@part
def program() -> Path:
    """The program that runs in the guest, statically linked."""
    sources = sorted(SOURCE.glob("*.c"))
    headers = [*sorted(SOURCE.glob("*.h")), *sorted((SOURCE / "fuawrite").glob("*.h")),
               target.SOURCE / "format/format.h", *sorted((target.SOURCE / "lib").glob("*.h"))]
    binary = BUILD / f"torture/torture-{digest(Path(target.__file__), *sources, *headers)}"
    with lock("torture"):
        if not binary.exists():
            binary.parent.mkdir(parents=True, exist_ok=True)
            part = binary.with_suffix(".part")
            output(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Wshadow", "-Werror",
                    "-static", "-pthread", *target.nameless(ROOT), f"-I{target.SOURCE}", "-o", part, *sources])
            part.rename(binary)
    return binary


def fua_module(kernel: kernels.Kernel) -> Path:
    """What lets the program write with FUA alone."""
    return target.helper_module("fuawrite", SOURCE / "fuawrite", kernel)


def linger_module(kernel: kernels.Kernel) -> Path:
    """What lets threads stand still at points in the target."""
    return target.helper_module("linger", SOURCE / "linger", kernel)


def bug_names() -> list[str]:
    """The planted bugs, in the order of their series file."""
    series = BUGS / "series"
    return [line.removesuffix(".patch") for line in series.read_text().splitlines()
            if line and not line.startswith("#")]


def patched_source(name: str, folder: Path) -> Path:
    """A copy of the target with one planted bug."""
    place = folder / name
    place.mkdir(parents=True)
    for source in [*target.module_sources(), target.SOURCE / "Kbuild"]:
        copy = place / source.relative_to(target.SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    output(["patch", "-s", "-F0", "-p2", "-d", place, "-i", BUGS / f"{name}.patch"])
    return place


def buggy_module(name: str, kernel: kernels.Kernel) -> Path:
    """dm-mtftl.ko with one planted bug."""
    inputs = digest(*target.module_sources(), target.SOURCE / "Kbuild", BUGS / f"{name}.patch")
    folder = BUILD / "torture/bugs" / kernel.key
    module, made = folder / name / "dm-mtftl.ko", folder / f"{name}.made"
    with lock(f"bug-{name}"):
        if not (module.exists() and made.exists() and made.read_text() == inputs):
            made.unlink(missing_ok=True)
            shutil.rmtree(folder / name, ignore_errors=True)
            _build(kernel, patched_source(name, folder), folder / "tree", module)
            write_file(made, inputs)
    return module


def _build(kernel: kernels.Kernel, source: Path, tree: Path, module: Path) -> None:
    """Make the module of these sources. One tree serves all bugs, so that only what differs from the last is built."""
    with lock("bugs-tree"):
        wanted = {path.relative_to(source): path.read_bytes() for path in source.rglob("*") if path.is_file()}
        for old in tree.rglob("*.[ch]"):
            if old.relative_to(tree) not in wanted and not old.name.endswith((".mod.c", "probed.h")):
                old.unlink()
        for place, data in wanted.items():
            update_file(tree / place, data)
        target.build_module(kernel, tree, asserts=True)
        # The next bug is built in the same place.
        shutil.copy(tree / "dm-mtftl.ko", module)


def _test_of(name: str) -> str:
    """The test that this bug's patch names, because cuts hardly show the bug; "": none."""
    found = re.search(r"^Test: (\S+)$", (BUGS / f"{name}.patch").read_text(), re.M)
    return found[1] if found else ""


def _test_fails(name: str, test: str, kernel: str) -> bool:
    """Does this test fail in a tree with the bug? That it passes without, `make test` shows."""
    tree = BUILD / "torture/bugs/trees" / name
    shutil.rmtree(tree, ignore_errors=True)
    for path in output(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", ":!results",
                        ":!docs"]).splitlines():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tree / path)
    output(["patch", "-s", "-F0", "-p1", "-d", tree, "-i", BUGS / f"{name}.patch"])
    done = subprocess.run([sys.executable, "-B", tree / "scripts/lab", "test", "--jobs", "1", "--kernel", kernel, test],
                          env=os.environ | {"MTFTL_BUILD": str(BUILD)}, capture_output=True, text=True)
    shutil.rmtree(tree)
    if done.returncode not in (0, 1):
        raise LabError(f"{test}: no verdict\n{done.stdout}{done.stderr}")
    return done.returncode == 1


@dataclass(frozen=True)
class Shape:
    """A boot's machine: what interleaves its CPUs, and a device so small that zones fill and GC runs all the time."""

    cpus: int
    quantum: int
    stall: int              # ns that a CPU stands still, at most
    stall_every: int
    period: int             # of priorities
    device: dict[str, str]


def shape(seed: int) -> Shape:
    """The machine of the boot with this seed."""
    rng = random.Random(seed)
    cpus = rng.choice([1, 2, 2, 4, 4, 8])
    quantum = rng.choice([500, 1000, 4000, 16000])
    zone, zones = rng.choice([(1, 32), (1, 40), (2, 24)])
    capacity = zone * 1024 * rng.choice([4, 4, 3]) // 4
    limit = rng.choice([0, 4, 5, 6, 8, 14])
    program_pages = rng.choice([1, 2, 4])
    device = {
        "flash.size": f"{zones * zone}M",
        "zoned.zone_size": f"{zone}M",
        "zoned.zone_capacity": f"{capacity}K",
        "zoned.max_open": str(limit),
        "zoned.max_active": str(limit),
        "flash.channels": "2",
        "flash.dies": "2",
        "flash.planes": "1",
        "flash.page": "16K",
        "flash.program_pages": str(program_pages),
        "flash.block_pages": str(capacity // 64),
        "flash.buffer": rng.choice(["256K", "1M", "8M"]),
        # Where there is metadata, units of data have their headers there.
        "ms": rng.choice(["0", "0", "16", "64"]),
    }
    stall, every = rng.choice(STALLS)
    return Shape(cpus, quantum, stall, every, rng.choice(PERIODS), device)


def turns(seed: int, chosen: Shape, cpus: int, clock: str, schedule: int | None) -> dict[str, Any]:
    """How CPUs take turns. One that is alone has nobody to wait for: it stands still now and then in any case."""
    if schedule is not None and cpus > 1:
        return {"schedule": seed + 1, "changes": schedule, "period": chosen.period}
    return {"stall": chosen.stall if clock == "virtual" else 0}


def run_boot(seed: int, cuts: int, args: argparse.Namespace, module: Path | None = None, mode: str = "",
             append: str = "", push: Sequence[Path] = (), workload: int | None = None, counted: bool = False) -> Boot:
    """One guest, `cuts` power cuts; `mode` is more of the program's command line, `append` of the kernel's.

    The program finds the files of `push` where it runs. `workload` is its seed, if that is not the machine's. If zones
    are `counted`, the guest prints at its end how often they went from one state to another: see zones_became().
    """
    kernel = kernels.get(args.kernel)
    module = module or target.module(kernel, asserts=True)
    tool = target.tool()
    if not module and not kernel.target:
        raise LabError(f"{kernel.release}: no headers, so no module to torture")
    chosen = shape(seed)
    device = chosen.device | dict(item.split("=", 1) for item in args.device.split(",") if item)
    binary = program()
    cpus = args.cpus or chosen.cpus
    options = Options(
        kernel=args.kernel, clock=args.clock, cpus=cpus, quantum=chosen.quantum, seed=seed,
        stall_every=chosen.stall_every, memory="1G", profile="tlc", device=device, drives=args.drives,
        **turns(seed, chosen, cpus, args.clock, args.schedule),
        timeout=args.timeout, module=False, push=[binary, *filter(None, [module]), tool, fua_module(kernel), *push],
        append=append + (sourcekernel.BOOT if kernel.target else ""))
    load = "".join(f" insmod ./{path.name};" for path in [*filter(None, [module]), fua_module(kernel), *push]
                   if path.suffix == ".ko")
    work = (f"./{binary.name} -s {seed if workload is None else workload} -n {cuts} -c {args.check_every} -v {mode}"
            f" {f'dm:{NAMESPACE}' if args.drives == 1 else f'stripe:{args.drives}'}")
    command = (f"set -e; export PATH=$PATH:/root;{load}"
               + (f" echo hist:keys=from,to > {STATES}/trigger; {work}; cat {STATES}/hist" if counted
                  else f" exec {work}"))

    def show(text: str) -> None:
        print(text, end="", flush=True)

    result = machine.run(command, options, accel="tcg" if args.clock == "virtual" else accel.choose(),
                         on_output=show if args.verbose else None)
    found = re.findall(r"^\{.*\}$", result.output, re.M)
    # A kernel that dies says no summary: then each round that began counts for one cut.
    summary = json.loads(found[-1]) if found else {"cuts": len(re.findall(r"^round ", result.output, re.M))}
    lines = [line for line in result.output.splitlines() if not line.startswith(("{", "round ", "  "))]
    # The program's own words first: the kernel's may be pages.
    report = "\n".join(lines[-40:]) if result.status else ""
    if result.failure:
        report += "\n" + "\n".join(str(result.failure).splitlines()[:20])
    if result.status:
        logs = BUILD / "torture/failed"
        write_file(logs / f"console-{seed}", result.console)
        write_file(logs / f"output-{seed}", result.output)
        report += f"\nall of it is in {logs}/*-{seed}"
    if result.failure and result.failure.kind in ("setup", "qemu", "timeout", "lost"):
        raise LabError(f"seed {seed}: no verdict\n{report}")
    return Boot(seed, result.status, summary, report, result.seconds, result.output, result.worked)


def zones_became(boot: Boot) -> dict[str, int]:
    """How often zones went from one state to another, as "victim to full", in a boot that counted it."""
    body = re.search(r"^enum mtftl_zone_state \{(.*?)^\};", (target.SOURCE / "policy/admit.h").read_text(), re.M | re.S)
    assert body
    names = [name.lower() for name in re.findall(r"\bMTFTL_ZONE_(\w+)", body[1])]
    return {f"{names[int(before)]} to {names[int(after)]}": int(times) for before, after, times in
            re.findall(r"from:\s+(\d+), to:\s+(\d+) \} hitcount:\s+(\d+)", boot.output)}


def _replay(seed: int, cuts: int, args: argparse.Namespace) -> str:
    words = ["scripts/lab torture", f"--seed {seed} --cuts {cuts}", f"--check-every {args.check_every}"]
    defaults = {"kernel": kernels.DEFAULT, "clock": "virtual", "cpus": 0, "drives": 1, "device": "", "schedule": None}
    words += [f"--{name} {getattr(args, name)}" for name, value in defaults.items() if getattr(args, name) != value]
    return " ".join([*words, "--verbose"])


def _shares(cuts: int, per_boot: int) -> list[int]:
    """How many cuts each boot makes."""
    return [per_boot] * (cuts // per_boot) + ([cuts % per_boot] if cuts % per_boot else [])


def _processor_seconds() -> float:
    """What the guests that ended took of the host's processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def commit() -> str:
    """What was tortured, and with what: kept in each result."""
    return output(["git", "-C", ROOT, "rev-parse", "HEAD"]).strip()


def _summary(args: argparse.Namespace, boots: list[Boot], seconds: float, worked: float) -> dict[str, object]:
    """What a run found so far, and how fast it was; processor seconds say that also for a busy host."""
    cuts = sum(boot.cuts for boot in boots)
    return {
        "cuts": cuts, "violations": sum(int(boot.summary.get("violations", 0)) for boot in boots),
        "failed_boots": sum(1 for boot in boots if boot.status), "seconds": round(seconds),
        "cuts_per_hour": round(3600 * cuts / seconds), "processor_seconds": round(worked),
        "cuts_per_processor_hour": round(3600 * cuts / worked) if worked else 0, "jobs": args.jobs,
        "kernel": kernels.get(args.kernel).release, "clock": args.clock, "drives": args.drives,
        "check_every": args.check_every, "schedule": args.schedule, "commit": commit(),
        "boots": [dict(boot.summary, status=boot.status, seconds=round(boot.seconds)) for boot in boots],
    }


def _expected(seed: int, cuts: int, known: dict[str, float], args: argparse.Namespace) -> float:
    """Seconds that a boot takes: for each cut as many as in the last one with the same number of processors."""
    cpus = args.cpus or shape(seed).cpus
    return cuts * known.get(f"a cut, {args.kernel}, {cpus} CPUs", 0.1 * (4 + cpus))


def booted(kernel: str) -> str:
    """A digest of what all guests with that kernel boot from, besides what torture pushes."""
    return machine.inputs("", Options(kernel=kernel, clock="virtual", module=False), accel="tcg")


def _inputs(seed: int, cuts: int, args: argparse.Namespace) -> str:
    """A digest of all that a boot in virtual time is a function of."""
    kernel = kernels.get(args.kernel)
    files = target.module(kernel, asserts=True), program(), target.tool(), fua_module(kernel)
    return digest(booted(args.kernel), *filter(None, files),
                  json.dumps([seed, cuts, args.check_every, args.device, args.cpus, args.drives, args.schedule]))


def _proof(boot: Boot | None) -> object:
    """What the same boot gives each time, on each machine."""
    return boot and (boot.seed, boot.status, boot.summary, boot.output)


def _far(seed: int, cuts: int, args: argparse.Namespace, bad: list[Boot]) -> pool.Far[Boot | None]:
    """How another machine makes a boot's cuts."""
    own = argparse.Namespace(**{name: getattr(args, name) for name in OF_A_BOOT})
    work = functools.partial(run_boot, seed, cuts, own)
    return pool.Far(_inputs(seed, cuts, own), functools.partial(_inputs, seed, cuts, own), work, work, _proof,
                    lambda: not bad)


def torture(args: argparse.Namespace) -> int:
    """Make the cuts that were asked for; the first finding ends the run. The result is kept boot by boot."""
    boots: list[Boot] = []
    shares = {args.seed + index: share for index, share in enumerate(_shares(args.cuts, args.per_boot))}
    kernel = kernels.get(args.kernel)
    program(), target.tool(), target.module(kernel, asserts=True), fua_module(kernel)
    known = pool.known(DURATIONS)
    bad: list[Boot] = []
    started, worked = time.monotonic(), _processor_seconds()
    result = _summary(args, boots, 1, 1)

    def done(_job: pool.Job[Boot | None], future: "Future[Boot | None]", left: str) -> None:
        nonlocal result
        boot = future.result()
        if boot is None:
            return
        boots.append(boot)
        boots.sort(key=lambda boot: boot.seed)
        took = sum(boot.worked for boot in boots) if args.scheduler else _processor_seconds() - worked
        result = _summary(args, boots, time.monotonic() - started, took)
        say(f"seed {boot.seed}: {boot.cuts} cuts in {boot.seconds:.0f} s, "
            f"{int(boot.summary.get('violations', 0))} violations; {result['cuts']} cuts so far, "
            f"{result['cuts_per_hour']} an hour; {left}")
        if args.json:
            write_file(args.json, json.dumps(result, indent=1) + "\n")
        if boot.status:
            bad.append(boot)
        elif boot.cuts:
            cpus = args.cpus or shape(boot.seed).cpus
            pool.remember(DURATIONS, {f"a cut, {args.kernel}, {cpus} CPUs": boot.seconds / boot.cuts})

    with cluster.connect(args.scheduler, args.twice) as elsewhere:
        pool.side_by_side([pool.Job(f"seed {seed}", functools.partial(
            lambda seed, share: None if bad else run_boot(seed, share, args), seed, share),
            _expected(seed, share, known, args), _far(seed, share, args, bad) if elsewhere else None)
            for seed, share in shares.items()], args.jobs, done, elsewhere)
    print(f"{result['cuts']} power cuts, {len(boots)} boots, {result['violations']} violations, "
          f"{result['cuts_per_hour']} cuts an hour, {result['cuts_per_processor_hour']} an hour of one processor")
    for boot in bad:
        print(boot.report)
        print(f"replay: {_replay(boot.seed, shares[boot.seed], args)}")
    return 1 if bad else 0


def _one(args: argparse.Namespace, cuts: int, mode: str, append: str = "") -> int:
    """One boot of another kind than power cuts."""
    of = commit()
    boot = run_boot(args.seed, cuts, args, mode=mode, append=append)
    print(json.dumps(boot.summary))
    if boot.status:
        print(boot.report)
    if args.json:
        args.json.write_text(json.dumps({"kernel": kernels.get(args.kernel).release, "commit": of,
                                         "status": boot.status, **boot.summary}, indent=1) + "\n")
    return 1 if boot.status else 0


class _Honest:
    """How many cuts of each boot the target itself survives: what is found in a planted bug's counts only then."""

    def __init__(self, args: argparse.Namespace, shares: list[int]) -> None:
        self._args, self._shares = args, shares
        self._locks = [threading.Lock() for _ in shares]
        self._clean = [0] * len(shares)         # each under its lock

    @property
    def cuts(self) -> int:
        return sum(self._clean)

    def survives(self, index: int, cuts: int) -> None:
        """Boot the target itself, unless an earlier boot has shown it; a failure is an error of the run."""
        with self._locks[index]:
            if self._clean[index] >= cuts:
                return
            seed = self._args.seed + index
            honest = run_boot(seed, min(2 * cuts, self._shares[index]), self._args)
            if honest.status:
                raise LabError(f"seed {seed}: the target fails without a planted bug, too:\n{honest.report}")
            self._clean[index] = honest.cuts


def _look_for(name: str, args: argparse.Namespace, shares: list[int], honest: _Honest) -> dict[str, object]:
    """Plant one bug and make cuts until it is found."""
    module = buggy_module(name, kernels.get(args.kernel))
    cuts = 0
    for index, share in enumerate(shares):
        boot = run_boot(args.seed + index, share, args, module)
        cuts += boot.cuts
        if boot.status:
            honest.survives(index, boot.cuts)
            lines = [line for line in boot.report.splitlines() if line.strip()]
            found = next((line for line in lines if line.startswith(("VIOLATION", "HANG"))), [*lines, "no report"][0])
            return {"bug": name, "found": True, "cuts": cuts, "by": found}
    test = _test_of(name)
    return {"bug": name, "found": False, "cuts": cuts,
            "by": test if test and _test_fails(name, test, args.kernel) else ""}


def _by_test(row: Mapping[str, object]) -> bool:
    """Did cuts not find it, but a test?"""
    return bool(row["by"]) and not row["found"]


def bugs(args: argparse.Namespace) -> int:
    """Plant each bug and look for it. What a boot finds counts where the same boot of the target itself is clean."""
    names = args.bugs or bug_names()
    unknown = sorted(set(names) - set(bug_names()))
    if unknown:
        raise LabError(f"no planted bug {', '.join(unknown)}: there are {', '.join(bug_names())}")
    kernel = kernels.get(args.kernel)
    target.need_module(kernel)
    program(), target.tool(), target.module(kernel, asserts=True), fua_module(kernel)
    shares = _shares(BUG_CUTS, min(args.per_boot, BUG_PER_BOOT))
    honest = _Honest(args, shares)
    rows: dict[str, dict[str, object]] = {}

    def done(job: pool.Job[dict[str, object]], future: "Future[dict[str, object]]", left: str) -> None:
        row = rows[job.name] = future.result()
        say(f"{job.name}: {'found after' if row['found'] else 'NOT FOUND in'} {row['cuts']} cuts"
            f"{', but by a test' if _by_test(row) else ''}  {str(row['by'])[:100]}; {left}")
        if args.json:
            write_file(args.json, json.dumps({"found": sum(bool(row["found"]) for row in rows.values()),
                                              "by_tests": sum(map(_by_test, rows.values())),
                                              "planted": len(rows), "seed": args.seed, "limit": BUG_CUTS,
                                              "clean_cuts": honest.cuts, "commit": commit(),
                                              "bugs": [rows[name] for name in names if name in rows]}, indent=1) + "\n")

    pool.side_by_side([pool.Job(name, functools.partial(_look_for, name, args, shares, honest),
                                 BUG_SECONDS) for name in names], args.jobs, done)
    hits = sum(bool(row["by"]) for row in rows.values())
    tests = sum(map(_by_test, rows.values()))
    print(f"{hits} of {len(rows)} planted bugs found" + (f", {tests} of them by a test alone" if tests else ""))
    return 0 if hits == len(rows) else 1


def add_schedule(parser: argparse.ArgumentParser) -> None:
    """How CPUs take turns, on the command line of all that runs the workload."""
    parser.add_argument("--schedule", type=int, choices=range(9), metavar="D",
                        help="one CPU goes on at a time, by priorities that the seed of the boot draws, of which D "
                        "change in each period; default: CPUs stand still now and then")


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`torture` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "torture", help="cut the power again and again, and check that nothing is lost",
        description="Runs a seeded workload on dm-mtftl, cuts the emulated device's power at seeded instants, mounts "
        "again and checks every block. Prints how to replay what it finds.")
    parser.add_argument("--cuts", type=int, default=1000, metavar="N", help="power cuts to make; default %(default)s")
    parser.add_argument("--seed", type=int, default=1, metavar="S",
                        help="seed of the first boot, plus 1 for each further one; default %(default)s")
    parser.add_argument("--per-boot", type=int, default=PER_BOOT, metavar="N",
                        help="cuts that one guest makes; default %(default)s")
    parser.add_argument("--jobs", type=int, default=guests_at_once(), metavar="N",
                        help="guests side by side; default: the host's cores, as far as its memory goes")
    parser.add_argument("--check-every", type=int, default=10, metavar="N",
                        help="rounds between offline checks with mtftl(8), 0: none; default %(default)s")
    parser.add_argument("--kernel", default=kernels.DEFAULT, metavar="6.12|6.1|current|kasan|kcsan|upstream|PATH",
                        help="kernel of the guests; default %(default)s")
    parser.add_argument("--clock", choices=("wall", "virtual"), default="virtual",
                        help="clock of the guests; default %(default)s")
    parser.add_argument("--cpus", type=int, default=0, metavar="N",
                        help="processors of each guest; default: the seed chooses")
    parser.add_argument("--drives", type=int, default=1, choices=(1, 2, 3, 4),
                        help="drives of each guest, whose power goes at one instant; of several, each has its dm-mtftl "
                        "below one dm-stripe; default %(default)s")
    parser.add_argument("--device", default="", metavar="KEY=VALUE,...",
                        help="properties of the device, over those that the seed chooses")
    add_schedule(parser)
    parser.add_argument("--timeout", type=float, default=3600, metavar="S",
                        help="seconds of the host's clock that one boot may take; default %(default)s")
    parser.add_argument("--bugs", nargs="*", metavar="NAME",
                        help="plant these bugs (default: all), each in a target of its own, and look for it")
    parser.add_argument("--allocations", action="store_true",
                        help="fail each allocation of a mount, then many under load (--kernel kasan)")
    parser.add_argument("--storm", type=int, default=0, metavar="N",
                        help="overwrite the device N times while reads, writes and zones fail")
    parser.add_argument("--damage", type=int, default=0, metavar="N", help="mount N damaged images after the cuts")
    parser.add_argument("--crafted", type=int, default=0, metavar="N",
                        help="mount N images after the cuts, each with one field wrong behind a right checksum, and "
                        "force GC")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result, boot by boot")
    parser.add_argument("-v", "--verbose", action="store_true", help="print a line for each round")
    cluster.add_options(parser)
    parser.set_defaults(function=_choose)


def _choose(args: argparse.Namespace) -> int:
    if args.scheduler and (args.bugs is not None or args.allocations or args.storm or args.damage or args.crafted):
        raise LabError("--scheduler: only power cuts are made on other machines, expected no other kind")
    if args.scheduler and args.clock != "virtual":
        raise LabError("--scheduler: only virtual time is the same elsewhere, expected --clock virtual")
    if args.drives > 1 and (args.bugs is not None or args.allocations or args.storm or args.damage or args.crafted):
        raise LabError(f"--drives {args.drives}: only power cuts are made of several, expected no other kind")
    if args.bugs is not None or args.damage or args.crafted:
        # Bugs are planted in what reads headers, and damage knows nothing of metadata. Crafted images do: with
        # --device ms=16 their units have no headers.
        args.device = ",".join(["ms=0", *filter(None, [args.device])])
    if args.bugs is not None:
        return bugs(args)
    if args.allocations:
        return _one(args, 0, "-f", append="kmemleak=on")
    if args.storm:
        args.device = ",".join([STORM_DEVICE, *filter(None, [args.device])])
        return _one(args, 0, f"-o {args.storm} -w 600")
    if args.damage:
        return _one(args, min(args.cuts, args.per_boot), f"-z {args.damage}")
    if args.crafted:
        return _one(args, min(args.cuts, args.per_boot), f"-x {args.crafted}")
    return torture(args)

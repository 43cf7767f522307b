# SPDX-License-Identifier: GPL-2.0
"""The peers' test suites: `scripts/lab suite NAME`.

A suite runs twice in guests over the host's root folder, on a device to be tested and on one to compare with.
results/suites/NAME.json holds each test's outcome on both, and why it fails or differs: `why` is
written by hand there and kept as long as the outcomes stay. results/suites/README.md shows the files as tables.

A guest that dies or hangs costs the test that was running; the next guest goes on behind it.
"""

import argparse
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..build import debian, emulator, kernels
from ..run import accel, failure, machine
from ..run.options import NAMESPACE, STOCK, Options
from ..run.outcome import Result, write_pulled
from ..util.base import BUILD, ROOT, LabError, fresh_folder, lock, logged, output, say, write_file

RESULTS = ROOT / "results/suites"
WORK = BUILD / "suites"
ZONED_SIZE = 2048           # MiB
# Both zoned namespaces: 256 zones of 8 MiB, of which 6 MiB can be written.
ZONES = {"zoned.zone_size": "8M", "zoned.zone_capacity": "6M", "zoned.max_open": "16",
         "zoned.max_active": "16"}
FLASH = {"flash.size": f"{ZONED_SIZE}M", "flash.channels": "2", "flash.dies": "2", "flash.planes": "1",
         "flash.page": "16K", "flash.program_pages": "2", "flash.block_pages": "96", "flash.buffer": "1M"}
PLAIN_SIZE = 8192           # of the others: xfstests wants large file systems
XFSTESTS = 40               # tests of the group that are run
LIMIT = 3000                # seconds of the host for one guest


@dataclass(frozen=True)
class Device:
    """What a suite runs on."""

    what: str
    profile: str
    settings: Mapping[str, str]
    size: int                           # MiB
    node: str = NAMESPACE
    prepare: str = "true"               # a line for bash that makes the node
    module: bool = False


DEVICES = {
    "stock": Device("zoned namespace of QEMU, without a flash model", "stock", ZONES, ZONED_SIZE),
    "raw": Device("zoned namespace of the flash model", "tlc", ZONES | FLASH, ZONED_SIZE),
    "plain": Device("NVMe namespace of QEMU, not zoned", "stock", {"zoned": "off"}, PLAIN_SIZE),
    "mtftl": Device("dm-mtftl on the flash model", "tlc", {"flash.size": f"{PLAIN_SIZE}M"}, PLAIN_SIZE,
                    "/dev/mapper/ftl",
                    f"mtftl format --force {NAMESPACE} && mtftl open {NAMESPACE} ftl", True),
    "box": Device("black box of the flash model", "tlc", FLASH | {
        "zoned": "off", "flash.personality": "blackbox", "flash.spare": "15", "flash.block_pages": "64"}, ZONED_SIZE),
}


@dataclass(frozen=True)
class Outcome:
    """How one test ended: pass, fail, skip, or how the guest did; and what it said."""

    outcome: str
    said: str = ""


Outcomes = dict[str, Outcome]


@dataclass(frozen=True)
class Suite:
    """How a suite is had, started and read."""

    what: str
    devices: tuple[str, str]                            # what to compare with, what is tested
    have: Callable[[Path | None], tuple[Path, str]]     # folder ready to run, version
    tests: Callable[[Path, Sequence[str]], list[str]]   # names, of groups or tests that were asked for
    script: Callable[[Path, Device, Sequence[str]], str]
    parse: Callable[[str], Outcomes]                    # a test without an end has the outcome ""
    groups: Sequence[str] = ()
    packages: Sequence[str] = ("suites",)


def _fio(_checkout: Path | None) -> tuple[Path, str]:
    """fio's own tests, of the source package of the fio that is installed."""
    version = output(["dpkg-query", "-W", "-f", "${Version}", "fio"]).strip()
    folder = WORK / f"fio-{version}"
    with lock("suite-fio"):
        if not folder.exists():
            say(f"fetching the source of fio {version}")
            with fresh_folder(folder) as part:
                debian.source(f"fio={version}", part / "source")
                shutil.copytree(part / "source/t/zbd", part / "t/zbd")
                shutil.rmtree(part / "source")
                (part / "fio").symlink_to("/usr/bin/fio")
    return folder, f"fio {version}"


def _fio_tests(folder: Path, asked: Sequence[str]) -> list[str]:
    numbers = re.findall(r"^test(\d+)\(\)", (folder / "t/zbd/test-zbd-support").read_text(), re.M)
    return [n for n in sorted(numbers, key=int) if not asked or n in asked]


def _fio_script(folder: Path, device: Device, tests: Sequence[str]) -> str:
    # -w: what one test leaves open counts against the limits of the next.
    return (f"cd {shlex.quote(str(folder))}/t/zbd\n"
            f"for t in {' '.join(tests)}; do timeout 300 ./test-zbd-support -w -t $t {device.node} | grep ^Running\n"
            "echo; done; mkdir -p ~/logs; cp *.log.* ~/logs")


def _fio_parse(text: str) -> Outcomes:
    return {m[1].lstrip("0"): Outcome(m[2].lower(), m[3].strip())
            for m in re.finditer(r"^Running test (\d+) \.\.\. ?(PASS|FAIL|SKIP|)(.*)$", text, re.M)}


def _built(name: str, how: str, make: Callable[[Path], None]) -> Callable[[Path | None], tuple[Path, str]]:
    """A suite that no Debian package holds: a copy of the user's checkout, built."""
    def have(checkout: Path | None) -> tuple[Path, str]:
        if not checkout or not (checkout / ".git").exists():
            raise LabError(f"{name} is in no Debian package: get it with `git clone {how}`, "
                           "and say --checkout FOLDER")
        version = output(["git", "-C", checkout, "describe", "--always", "--dirty"]).strip()
        folder = WORK / f"{name}-{version}"
        with lock(f"suite-{name}"):
            if not folder.exists():
                say(f"building {name} {version}")
                with fresh_folder(folder) as part:
                    shutil.copytree(checkout, part, symlinks=True, dirs_exist_ok=True,
                                    ignore=shutil.ignore_patterns(".git"))
                    make(part)
        return folder, f"{name} {version}"
    return have


def _blktests_make(folder: Path) -> None:
    # It cuts a kernel's release off at its first "-": Debian's have a "+" before that, which ends the test.
    rc = folder / "common/rc"
    rc.write_text(rc.read_text().replace("sed 's/-.*//;", "sed 's/[-+].*//;"))
    logged(["make", "-C", folder], BUILD / "log/blktests.log")


def _blktests_tests(folder: Path, asked: Sequence[str]) -> list[str]:
    """The tests of these groups that use a device."""
    files = [f for name in asked for f in ([folder / "tests" / name] if "/" in name else
                                           sorted((folder / "tests" / name).glob("[0-9][0-9][0-9]")))]
    return [f"{f.parent.name}/{f.name}" for f in files if "test_device()" in f.read_text()]


def _blktests_script(folder: Path, device: Device, tests: Sequence[str]) -> str:
    return (f"cd {shlex.quote(str(folder))}\necho 'TEST_DEVS=({device.node}) TIMEOUT=20' >config\n"
            f"./check -o ~/logs {' '.join(tests)}")


def _blktests_parse(text: str) -> Outcomes:
    found: Outcomes = {}
    for m in re.finditer(r"^(\w+/\d+)(?: => \S+)? .*?(?:\[([\w ]+)\])?$((?:\n {4}.*)*)", text, re.M):
        outcome = {"passed": "pass", "failed": "fail", "not run": "skip", None: ""}[m[2]]
        said = [line.strip() for line in m[3].splitlines() if line.strip() and "\t" not in line]
        said = [line for line in said if not re.match(r"(runtime|read iops|\S+ +\d\S*$)", line)]
        found[m[1]] = Outcome(outcome, "; ".join(said) if outcome != "pass" else "")
    return found


def _blktests(devices: tuple[str, str], groups: Sequence[str]) -> Suite:
    return Suite(f"blktests, groups {', '.join(groups[:-1])} and {groups[-1]}", devices,
                 _built("blktests", "https://github.com/linux-blktests/blktests", _blktests_make),
                 _blktests_tests, _blktests_script, _blktests_parse, groups)


def _xfstests_make(folder: Path) -> None:
    logged(["make", "-C", folder, "-j2"], BUILD / "log/xfstests.log")


def _xfstests_tests(folder: Path, asked: Sequence[str]) -> list[str]:
    """The first tests of group quick, or those asked for."""
    quick = [f"generic/{f.name}" for f in sorted((folder / "tests/generic").glob("[0-9][0-9][0-9]"))
             if re.search(r"^_begin_fstest .*\bquick\b", f.read_text(errors="replace"), re.M)]
    return list(asked) or quick[:XFSTESTS]


def _xfstests_script(fs: str) -> Callable[[Path, Device, Sequence[str]], str]:
    """Test and scratch device are halves of the device."""
    def script(folder: Path, device: Device, tests: Sequence[str]) -> str:
        return f"""
mkdir ~/bin
ln -s /bin/true ~/bin/udevadm   # without udevd, udevadm wait has no end
PATH=~/bin:$PATH
for u in fsgqa fsgqa2 123456-fsgqa; do useradd -m $u; done
half=$(($(blockdev --getsz {device.node}) / 32768 * 16384))
echo 0 $half linear {device.node} 0 | dmsetup create test
echo 0 $half linear {device.node} $half | dmsetup create scratch
mkfs.{fs} /dev/mapper/test >/dev/null
mkdir -p /mnt/test /mnt/scratch
export FSTYP={fs} TEST_DEV=/dev/mapper/test TEST_DIR=/mnt/test SCRATCH_DEV=/dev/mapper/scratch SCRATCH_MNT=/mnt/scratch
cd {shlex.quote(str(folder))}
export RESULT_BASE=~/logs
./check {' '.join(tests)}
"""
    return script


def _xfstests_parse(text: str) -> Outcomes:
    found: Outcomes = {}
    for m in re.finditer(r"^(generic/\d+) +(.*)$((?:\n {4}.*)*)", text, re.M):
        words = m[2].removesuffix(" ... ").strip()
        if words.startswith("[not run]"):
            found[m[1]] = Outcome("skip", words.removeprefix("[not run]").strip())
        elif re.fullmatch(r"\d+s", words):
            found[m[1]] = Outcome("pass")
        else:
            # Where files were, and how to see more of them, is the affair of one machine.
            said = re.sub(r"\n +\(Run '.*", "", words + m[3])
            found[m[1]] = Outcome("fail" if words else "", re.sub(r"(?<!\S)/\S+/", "", said))
    return found


SUITES = {
    "fio-zbd": Suite("fio's tests of zoned devices", ("stock", "raw"), _fio, _fio_tests, _fio_script, _fio_parse),
    "blktests-zoned": _blktests(("stock", "raw"), ("zbd", "block", "nvme")),
    "blktests": _blktests(("plain", "mtftl"), ("block", "dm")),
    "blktests-box": _blktests(("plain", "box"), ("block", "nvme")),
    **{f"xfstests-{fs}": Suite(
        f"xfstests on {fs}, the first of group quick", ("plain", "mtftl"),
        _built("xfstests", "git://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git", _xfstests_make),
        _xfstests_tests, _xfstests_script(fs), _xfstests_parse, (), ("suites", "xfstests")) for fs in ("ext4", "xfs")},
}


def _guests(suite: Suite, folder: Path, device: Device, tests: list[str], options: Options,
            ) -> Iterator[tuple[Outcomes, Result]]:
    """What each guest brought out, until all tests have run."""
    while tests:
        script = f"{device.prepare} || exit\nmkdir -p ~/logs\n{suite.script(folder, device, tests)}\ntrue"
        result = machine.run(script, options, accel=accel.choose(), on_output=lambda text: print(text, end=""))
        found = {name: out for name, out in suite.parse(result.output).items() if name in tests}
        open_ended = [name for name, out in found.items() if not out.outcome]
        if not found or (open_ended and not result.failure):
            raise LabError(f"the guest ran no test of {tests[0]} to {tests[-1]}: "
                           f"{result.failure or result.status}\n{result.output[-2000:]}")
        for name in open_ended:
            assert result.failure
            found[name] = Outcome(result.failure.kind, failure.KINDS[result.failure.kind][1])
        yield found, result
        tests = [name for name in tests if name not in found]


def run(suite: Suite, name: str, checkout: Path | None, asked: Sequence[str], kernel: str,
        ) -> tuple[Outcomes, dict[str, str]]:
    """Run a suite's tests on one device."""
    folder, version = suite.have(checkout)
    device = DEVICES[name]
    tests = suite.tests(folder, asked or suite.groups)
    if not tests:
        raise LabError(f"{version} has no such test")
    with machine.folder() as place:
        media = None
        if device.profile == STOCK:
            media = place / "media"
            media.touch()
            os.truncate(media, device.size << 20)
        options = Options(kernel=kernel, cpus=2, memory="4G", profile=device.profile, module=device.module,
                                  device=dict(device.settings), media=media, timeout=LIMIT, pull=["logs"],
                                  host_root=True)
        say(f"{version}: {len(tests)} tests on {name}")
        outcomes: Outcomes = {}
        for found, result in _guests(suite, folder, device, tests, options):
            outcomes |= found
            write_pulled(result.files, WORK / "last" / name)
            if result.failure:
                say(f"the guest: {result.failure}")
    return outcomes, {"suite": version, "kernel": kernels.get(kernel).release,
                      "emulator": re.sub(r" \(.*", "", output([emulator.build(), "--version"]).splitlines()[0])}


def _number(name: str) -> tuple[str, int]:
    group, _, number = name.rpartition("/")
    return group, int(number)


def merge(old: Mapping[str, Any], suite: Suite, name: str, outcomes: Outcomes, versions: dict[str, str],
          ) -> dict[str, Any]:
    """A suite's results with one device's outcomes in it; what explains other outcomes is dropped."""
    rows = {row["test"]: dict(row) for row in old.get("tests", [])}
    for test, out in outcomes.items():
        row = rows.setdefault(test, {"test": test})
        if (row.get(name), row.get(f"{name} said")) != (out.outcome, out.said):
            row.pop("why", None)
        row |= {name: out.outcome, f"{name} said": out.said}
    return {"what": suite.what, "devices": list(suite.devices), "versions": versions,
            "tests": [rows[test] for test in sorted(rows, key=_number)]}


def to_explain(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tests that fail somewhere, or end differently on the two devices."""
    return [row for row in results["tests"]
            if len(ends := {row.get(device) for device in results["devices"]}) > 1 or not ends <= {"pass", "skip"}]


def table(results: Mapping[str, Any]) -> str:
    """A suite's results as Markdown: counts, then each test that needs an explanation."""
    devices, rows = results["devices"], results["tests"]
    kinds = ["pass", "fail", "skip"] + sorted({row[d] for row in rows for d in devices} - {"pass", "fail", "skip"})
    lines = [f"| {results['versions']['suite']} | {' | '.join(kinds)} |", "|" + "---|" * (1 + len(kinds))]
    lines += [f"| {DEVICES[d].what} | " + " | ".join(str(sum(row[d] == kind for row in rows)) for kind in kinds) + " |"
              for d in devices]
    odd = to_explain(results)
    if odd:
        lines += ["", f"| test | {' | '.join(devices)} | why |", "|---|" + "---|" * len(devices) + "---|"]
        lines += [f"| {row['test']} | {' | '.join(row[d] for d in devices)} | {row.get('why', '')} |" for row in odd]
    return "\n".join(lines) + "\n"


def update_page(text: str, results: Path) -> str:
    """results/suites/README.md with the suites' tables as their results are."""
    def section(match: re.Match[str]) -> str:
        path = results / f"suites/{match[2]}.json"
        middle = f"\n{table(json.loads(path.read_text()))}\n" if path.exists() else ""
        return f"{match[1]}\n{middle}{match[3]}"

    return re.sub(r"(<!-- suite: (\S+) -->)\n.*?(<!-- end of suite -->)", section, text, flags=re.S)


def _suite(args: argparse.Namespace) -> int:
    suite = SUITES[args.name]
    debian.ensure("build", "emulator", "guest", "tool", *suite.packages)
    path = args.out / f"{args.name}.json"
    for device in [args.device] if args.device else suite.devices:
        outcomes, versions = run(suite, device, args.checkout, args.tests, args.kernel)
        old = json.loads(path.read_text()) if path.exists() else {}
        write_file(path, json.dumps(merge(old, suite, device, outcomes, versions), indent=1) + "\n")
    results = json.loads(path.read_text())
    if not all(device in row for row in results["tests"] for device in suite.devices):
        say(f"{path} has not both devices yet")
        return 0
    print(table(results))
    unexplained = [row["test"] for row in to_explain(results) if not row.get("why")]
    if unexplained:
        say(f"without an explanation in {path}: {' '.join(unexplained)}")
    return 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`suite` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "suite", help="run a peer's test suite and compare two devices",
        description="Runs a peer's test suite in guests on two devices and keeps the outcomes. There are: "
        + "; ".join(f"{name}: {suite.what}, on {' and '.join(suite.devices)}" for name, suite in SUITES.items()) + ".")
    parser.add_argument("name", choices=SUITES, metavar="NAME", help=", ".join(SUITES))
    parser.add_argument("tests", nargs="*", metavar="TEST", help="only these tests or groups")
    parser.add_argument("--checkout", type=Path, metavar="DIR",
                        help="folder of the suite, if Debian does not package it")
    parser.add_argument("--device", choices=DEVICES, help="on this device only")
    parser.add_argument("--kernel", default=kernels.DEFAULT, metavar="6.12|6.1|current|PATH",
                        help="kernel of the guests; default %(default)s")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="where NAME.json is kept")
    parser.set_defaults(function=_suite)

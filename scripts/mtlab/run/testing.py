# SPDX-License-Identifier: GPL-2.0
"""Fixtures for everything that is tested in a guest; conftest.py at the root loads them.

    def test_status(lab_run):
        assert lab_run("exit 7").status == 7

    @pytest.fixture(scope="module")
    def boot(lab_run):                  # several tests look at one boot's result
        return lab_run("...", cpus=4, clock="virtual", pull=["out.json"])

With `--kernel NAME` guests run that kernel where they would run 6.12, `make test KERNEL=kasan K=target/tests` for one:
the debug kernels look for what a test alone does not see, and take several times as long.

A test that starts the emulator reaches the fixture `emulator_binary`: through `lab_run`, through `lab` (for the
command line), or by itself. `make check` runs all others, by that rule alone.

`make test` runs tests side by side, a worker a core: the longest first, by what they took when they ran last. Tests
that share a guest (a fixture of a module's scope) stay in one worker; no test may depend on another one's order.

A test that takes longer than LIMIT counts as hung: it fails, and its stack says where it waited.

A failure of the guest (panic, oops, hang, ...) fails the test that booted it, with the kernel's
lines; a test that wants one passes expect="panic".
"""

import functools
import itertools
import os
import random
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..build import kernels, sourcekernel
from ..util import pool, stop
from ..util.base import ROOT, LabError
from . import accel, machine
from .options import Options
from .outcome import Result

LabRun = Callable[..., Result]
SLOWNESS = 8                # of a debug kernel's guest, for time-outs
DURATIONS = "tests"         # where pool keeps them
UNKNOWN = 30.0              # seconds of a test that boots a guest and did not run before
LONGEST = 10                # tests that are named at the end
LIMIT = 1200                # seconds after which a test counts as hung, and fails by name


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our own words on the command line."""
    parser.addoption("--kernel", default=kernels.DEFAULT, help="kernel of the guests that would run the default one")
    parser.addoption("--no-guest", action="store_true", help="only tests that do not start the emulator")
    parser.addoption("--night", action="store_true", help="also the tests that are marked night")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="in an order of this seed, not the longest first")


def run(command: str, *, kernel_instead: str = kernels.DEFAULT, expect: str | None = None,
        **options: object) -> Result:
    """Run a command in a guest; options are the fields of Options."""
    chosen = Options(**options)  # type: ignore[arg-type]
    if chosen.kernel == kernels.DEFAULT:
        chosen.kernel = kernel_instead
    if chosen.kernel in sourcekernel.DEBUG:
        chosen.timeout *= SLOWNESS
        chosen.append += sourcekernel.DEBUG_BOOT
    elif chosen.kernel == kernels.UPSTREAM:
        chosen.append += sourcekernel.BOOT
    kind = "tcg" if chosen.clock == "virtual" else accel.choose()
    result = machine.run(command, chosen, accel=kind)
    got = result.failure.kind if result.failure else None
    if got != expect:
        pytest.fail(f"expected {expect or 'no failure'} of the guest, got {result.failure or 'none'}\n"
                    f"--- output ---\n{result.output}", pytrace=False)
    return result


@pytest.fixture(autouse=True)
def not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test stops ends with it: the guests of later ones run."""
    monkeypatch.setattr(stop, "_stop", threading.Event())


@pytest.fixture(scope="session")
def emulator_binary() -> Path:
    """Our QEMU, for tests that start it themselves. Every test that starts it in any way asks for this fixture."""
    from ..build import emulator
    try:
        return emulator.build()
    except LabError as e:
        pytest.exit(str(e))


@pytest.fixture(scope="session")
def lab_run(pytestconfig: pytest.Config, emulator_binary: Path) -> LabRun:
    """Boots a guest and runs a command; see this file's top and docs/lab/tests.md."""
    return functools.partial(run, kernel_instead=pytestconfig.getoption("--kernel"))


@pytest.fixture(scope="session")
def lab(emulator_binary: Path) -> Path:
    """scripts/lab, for tests that boot guests by the command line."""
    return ROOT / "scripts/lab"


def starts_emulator(item: pytest.Item) -> bool:
    """Does the test ask for the emulator, itself or through other fixtures?"""
    return "emulator_binary" in getattr(item, "fixturenames", ())


def _guests(item: pytest.Item) -> str:
    """Names the fixtures that this test shares with others of its module; a guest is behind most of them."""
    fixtures = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    shared = sorted(name for name, defined in fixtures.items() if defined[-1].scope == "module")
    return f"{Path(item.path).stem}-{'-'.join(shared)}" if shared else ""


def pytest_itemcollected(item: pytest.Item) -> None:
    """`-k target/tests` finds tests by their folder: from version 8 on pytest itself looks at the file's name only."""
    item.extra_keyword_matches.add(item.path.relative_to(item.config.rootpath).as_posix())


@pytest.hookimpl(tryfirst=True)  # type: ignore[misc]
def pytest_configure(config: pytest.Config) -> None:
    """No test may hang the run. The limit is a test's with all of its fixtures; pytest-timeout keeps it."""
    config.addinivalue_line("markers", "night: a test that is skipped without --night, because it takes minutes")
    if config.pluginmanager.hasplugin("timeout") and config.option.timeout is None:
        debug = config.getoption("--kernel") in sourcekernel.DEBUG
        config.option.timeout = LIMIT * SLOWNESS if debug else LIMIT


@functools.cache
def _known() -> dict[str, float]:
    """What tests took when they ran last: read once, however many workers are told."""
    return pool.known(DURATIONS)


@pytest.hookimpl(optionalhook=True)  # type: ignore[misc]
def pytest_configure_node(node: Any) -> None:
    """All workers order the tests by the same durations."""
    node.workerinput["durations"] = _known()


@pytest.hookimpl(tryfirst=True)  # type: ignore[misc]
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need no guest, if only they are wanted; the longest first. Those that share a guest stay together."""
    if config.getoption("--no-guest"):
        left_out = [item for item in items if starts_emulator(item)]
        items[:] = [item for item in items if not starts_emulator(item)]
        config.hook.pytest_deselected(items=left_out)
    if not config.getoption("--night"):
        for item in items:
            if item.get_closest_marker("night"):
                item.add_marker(pytest.mark.skip(reason="for minutes: `make night`, or `lab test --night`"))
    told = getattr(config, "workerinput", None)
    known: dict[str, float] = _known() if told is None else told["durations"]
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        name = _guests(item)
        groups.setdefault(name or item.nodeid, []).append(item)
        if name:
            item.add_marker(pytest.mark.xdist_group(name))

    def seconds(item: pytest.Item) -> float:
        return known.get(item.nodeid, UNKNOWN if starts_emulator(item) else 0)

    seed = config.getoption("--shuffle")
    order = random.Random(seed)
    ordered = [order.sample(group, len(group)) for group in order.sample([*groups.values()], len(groups))] \
        if seed is not None else sorted(groups.values(), key=lambda group: -sum(map(seconds, group)))
    items[:] = [item for group in ordered for item in group]


@pytest.hookimpl(trylast=True)  # type: ignore[misc]
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a failure when it happens: of a run that is cut short nothing else is known. Its text follows at the end."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed after {report.duration:.0f} s: {report.nodeid}", flush=True)


def _durations(reporter: Any) -> dict[str, float]:
    """What each test took in all, set-up and end with it, the longest first."""
    took: dict[str, float] = {}
    for report in itertools.chain.from_iterable(reporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            name = re.sub(r"@[^]]*$", "", report.nodeid)        # which xdist adds: the group
            took[name] = took.get(name, 0) + report.duration
    return dict(sorted(took.items(), key=lambda item: -item[1]))


@pytest.hookimpl(trylast=True)  # type: ignore[misc]
def pytest_unconfigure(config: pytest.Config) -> None:
    """The longest tests; the last line counts all of them."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not reporter:
        return
    took = _durations(reporter)
    if took:
        pool.remember(DURATIONS, took)
        print(f"The {min(LONGEST, len(took))} that took longest:")
        print("\n".join(f"{seconds:7.1f} s  {name}" for name, seconds in itertools.islice(took.items(), LONGEST)))
    count = {k: len(reporter.stats.get(k, [])) for k in ("passed", "failed", "error", "skipped")}
    print(f"{count['passed']} passed, {count['failed'] + count['error']} failed, {count['skipped']} skipped")

# SPDX-License-Identifier: GPL-2.0
"""Fixtures for everything that is tested in a guest; conftest.py at the root loads them.

    def test_status(lab_run):
        assert lab_run("exit 7").status == 7

    @pytest.fixture(scope="module")
    def boot(lab_run):                  # several tests look at one boot's result
        return lab_run("...", cpus=4, clock="virtual", pull=["out.json"])

With `--kernel NAME` guests run that kernel where they would run 6.12, `make test KERNEL=kasan K=test_target` for one:
the debug kernels look for what a test alone does not see, and take several times as long.

A failure of the guest (panic, oops, hang, ...) fails the test that booted it, with the kernel's
lines; a test that wants one passes expect="panic".
"""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from . import accel, debugkernel, kernels, machine
from .base import LabError

LabRun = Callable[..., machine.Result]
SLOWNESS = 8                # of a debug kernel's guest, for time-outs


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our own words on the command line."""
    parser.addoption("--kernel", default=kernels.DEFAULT, help="kernel of the guests that would run the default one")


def run(command: str, *, kernel_instead: str = kernels.DEFAULT, expect: str | None = None,
        **options: object) -> machine.Result:
    """Run a command in a guest; options are the fields of machine.Options."""
    chosen = machine.Options(**options)  # type: ignore[arg-type]
    if chosen.kernel == kernels.DEFAULT:
        chosen.kernel = kernel_instead
    if chosen.kernel in debugkernel.FLAVOURS:
        chosen.timeout *= SLOWNESS
        chosen.append += debugkernel.BOOT
    kind = "tcg" if chosen.clock == "virtual" else accel.choose()
    result = machine.run(command, chosen, accel=kind)
    got = result.failure.kind if result.failure else None
    if got != expect:
        pytest.fail(f"expected {expect or 'no failure'} of the guest, got {result.failure or 'none'}\n"
                    f"--- output ---\n{result.output}", pytrace=False)
    return result


@pytest.fixture(scope="session")
def lab_run(pytestconfig: pytest.Config) -> LabRun:
    """Boots a guest and runs a command; see this file's top and docs/lab.md."""
    return functools.partial(run, kernel_instead=pytestconfig.getoption("--kernel"))


@pytest.fixture(scope="session")
def emulator_binary() -> Path:
    """Our QEMU, for tests that start it themselves."""
    from . import emulator
    try:
        return emulator.build()
    except LabError as e:
        pytest.exit(str(e))


@pytest.hookimpl(trylast=True)  # type: ignore[misc]
def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line counts all tests."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter:
        count = {k: len(reporter.stats.get(k, [])) for k in ("passed", "failed", "error", "skipped")}
        print(f"{count['passed']} passed, {count['failed'] + count['error']} failed, {count['skipped']} skipped")

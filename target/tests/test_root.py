# SPDX-License-Identifier: GPL-2.0
"""A Debian whose root file system is on mtftl, as `lab boots` makes it: fewer boots, and what each said."""

import os
import re
from pathlib import Path

import pytest
from mtlab.cmd import boots
from mtlab.cmd.boots import UUIDS
from mtlab.util.base import BUILD, LabError

CUTS, REBOOTS = 1, 2        # the second reboot is into another kernel


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What boot/system makes of the packages: archives, kernels and what they boot with."""
    root = BUILD / "roots" / boots.RELEASE
    if os.geteuid() or not root.with_suffix(".done").exists():
        pytest.skip(f"no clean {root.name}: target/tests/packages/make-root {root.name} {BUILD}, as root")
    return boots.make_system(root, tmp_path_factory.mktemp("system"))


def test_root_on_mtftl(emulator_binary: Path, system: Path, tmp_path: Path) -> None:
    """Whatever ends a boot, the next one needs nobody, and finds what was durable; a reboot closes all drives."""
    machine = boots.Machine(tmp_path, system, emulator_binary)
    machine.install()
    first, *middle, last = machine.go(boots.plan(CUTS, REBOOTS, 1))
    twins = {line for line in first.said if line.startswith("twin: ")}      # once for each time that it was asked for
    assert len(twins) == 1 and re.fullmatch("twin: /dev/nvme[0-9]n1 and /dev/nvme[0-9]n1 have it", *twins), twins
    assert [line for line in first.said if line not in twins] == [
        f"drive mtftl {UUIDS['root']}", "mtftltab: line 2", "data is active", "twin is failed",
        "failed: mtftl@twin.service"], first.said
    assert {boot.end: boot.said for boot in middle} == {"cut": [], "update": ["updated"]}
    assert last.said == []


def test_the_page_shows_the_results() -> None:
    text = (boots.RESULTS / "README.md").read_text()
    assert text == boots.update_page(text, boots.RESULTS.parent)


@pytest.mark.parametrize("cuts, reboots", [(0, 2), (1, 2), (10, 10)])
def test_each_plan_has_what_was_asked_for(cuts: int, reboots: int) -> None:
    """One of the reboots is the first one, one updates the kernel, and a last boot looks."""
    ends = [end for end, _ in boots.plan(cuts, reboots, 1)]
    assert (ends[0], ends[-1], ends.count("update")) == ("first", "last", 1)
    assert (ends.count("cut"), len(ends)) == (cuts, cuts + reboots + 1)
    assert all(bool(after) == (end == "cut") for end, after in boots.plan(cuts, reboots, 1))


def test_a_file_that_is_missing_is_found(tmp_path: Path) -> None:
    """Also a number that was durable and is not there, and a drive that was not closed before a reboot."""
    def machine() -> boots.Machine:
        made = boots.Machine(tmp_path, tmp_path, tmp_path)
        made.boots.append(boots.Boot(1, "6.12", "reboot", 1, 1, [], 1, dict.fromkeys(boots.FOLDERS, 0),
                                     dict.fromkeys(boots.FOLDERS, 7), []))
        return made

    def said(files: int, counted: int) -> list[str]:
        lines = ["kernel 6.12"]
        for folder in boots.FOLDERS:
            lines += [f"{folder} has {files} files", f"{folder} counted {counted}"]
        return [*lines, "ready for reboot"]

    assert machine()._judge("reboot", (1, 1), [], said(2, 7)).found == dict.fromkeys(boots.FOLDERS, 7)
    for newer, lines in (([], said(1, 7)), ([], said(2, 6)), ([0], said(2, 7))):
        with pytest.raises(LabError):
            machine()._judge("reboot", (1, 1), newer, lines)

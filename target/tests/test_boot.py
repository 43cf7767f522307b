# SPDX-License-Identifier: GPL-2.0
"""The systemd generator of /etc/mtftltab, its units and the udev rule, as far as a host without drives can tell."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mtlab.build import target
from mtlab.util.base import ROOT

BOOT = target.SOURCE / "boot"
TAB = """
# name device options
fast      /dev/disk/by-id/nvme-x_1   lanes=8
broken    /dev/nvme1n1               frob
slow-one  UUID=6D656469-6120-666f-7220-746573747321 nofail
alone
later     /dev/nvme9n1               noauto
root      /dev/nvme0n1               initramfs
fast      /dev/nvme2n1
spare@2   /dev/nvme3n1               nofail,noauto,readonly
"""
UUID_LINK = r"dev-disk-by\x2duuid-6d656469\x2d6120\x2d666f\x2d7220\x2d746573747321.device"


class Units:
    """What the generator makes of a tab; the units as installed lie beside it, with the tool as built."""

    def __init__(self, folder: Path, tab: str | None) -> None:
        self.made, self.system = folder / "made", folder / "system"
        self.made.mkdir()
        self.system.mkdir()
        for unit in ("mtftl@.service", "mtftl-watch@.service", "mtftl-shutdown.service", "mtftl.target"):
            text = (BOOT / unit).read_text().replace("/usr/sbin/mtftl", str(target.tool()))
            text = text.replace("/usr/libexec/mtftl", str(BOOT))
            (self.system / unit).write_text(text)
        if tab is not None:
            (folder / "mtftltab").write_text(tab)
        self.log = folder / "log"
        env = dict(os.environ, MTFTLTAB=str(folder / "mtftltab"), MTFTL=str(target.tool()),
                   MTFTL_UNITS=str(self.system), MTFTL_LOG=str(self.log))
        done = subprocess.run([BOOT / "mtftl-generator", *[self.made] * 3], env=env, capture_output=True, text=True)
        self.status, self.said = done.returncode, done.stdout + done.stderr

    def links(self) -> set[str]:
        found = [p for p in self.made.rglob("*") if p.is_symlink()]
        assert all(p.resolve().parent == self.system and p.exists() for p in found)
        return {str(p.relative_to(self.made)) for p in found}

    def drop_in(self, service: str) -> list[str]:
        return (self.made / f"mtftl@{service}.service.d/50-mtftltab.conf").read_text().splitlines()


@pytest.fixture
def units(tmp_path: Path) -> Units:
    return Units(tmp_path, TAB)


def test_wrong_lines_are_named(units: Units) -> None:
    """Each in the log with its number and the reason, and systemd hears of it by the exit status."""
    said = units.log.read_text().splitlines()
    assert [line.split(": ")[2] for line in said] == ["line 4", "line 6", "line 9"], said
    assert [line.split(": ")[3].split(",")[0] for line in said] == [
        "an option is not one", "expected a name", "a line above has this name; this line is left out"], said
    assert (units.status, units.said) == (1, "")


def test_right_lines_are_opened(units: Units) -> None:
    """The boot and the users of a device depend on its service, as the line's options say."""
    assert units.links() == {
        "sysinit.target.wants/mtftl.target",
        "sysinit.target.wants/mtftl-shutdown.service",
        "mtftl.target.requires/mtftl@fast.service",
        r"mtftl.target.wants/mtftl@slow\x2done.service",
        "dev-mapper-fast.device.requires/mtftl@fast.service",
        r"dev-mapper-slow\x2done.device.wants/mtftl@slow\x2done.service",
        "dev-mapper-later.device.requires/mtftl@later.service",
        r"dev-mapper-spare\x402.device.wants/mtftl@spare\x402.service",
    }


def test_a_service_waits_for_its_drive(units: Units) -> None:
    assert {f"Requires={UUID_LINK}", f"After={UUID_LINK}"} <= set(units.drop_in(r"slow\x2done"))
    assert {"Requires=dev-nvme9n1.device", "After=dev-nvme9n1.device"} <= set(units.drop_in("later"))


def test_the_boot_waits_unless_told_otherwise(units: Units) -> None:
    waits = [name for name in ("fast", r"slow\x2done", "later", r"spare\x402")
             if "Before=mtftl.target" in units.drop_in(name)]
    assert waits == ["fast"]


@pytest.mark.parametrize("tab", [None, "", "# nothing\n"])
def test_no_line_is_no_unit(tmp_path: Path, tab: str | None) -> None:
    units = Units(tmp_path, tab)
    assert (units.status, units.said, units.log.read_text(), units.links()) == (0, "", "", set())


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_systemd_takes_the_units(units: Units) -> None:
    for name in (r"mtftl@slow\x2done.service", "mtftl@fast.service", r"mtftl-watch@slow\x2done.service",
                 "mtftl-shutdown.service", "mtftl.target"):
        unit = units.system / name
        if not unit.exists():
            unit.symlink_to(units.system / (name.partition("@")[0] + "@.service"))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True,
                              env=dict(os.environ, SYSTEMD_UNIT_PATH=f"{units.system}:{units.made}:"))
        assert done.returncode == 0 and "mtftl" not in done.stderr, done.stderr


def test_udev_takes_the_rules() -> None:
    if subprocess.run(["udevadm", "verify", "--help"], capture_output=True).returncode:
        pytest.skip("this udevadm cannot verify rules; Debian 13's can")
    done = subprocess.run(["udevadm", "verify", BOOT / "62-mtftl.rules"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_catalog_explains_each_event(tmp_path: Path) -> None:
    """systemd takes it; the ids are those of the tool and of the page."""
    catalog = tmp_path / "usr/lib/systemd/catalog/mtftl.catalog"
    catalog.parent.mkdir(parents=True)
    shutil.copy(BOOT / "mtftl.catalog", catalog)
    told = re.findall(r'"([0-9a-f]{32})"', (target.SOURCE / "tool/watch.c").read_text())
    assert re.findall(r"^-- (\S+)$", catalog.read_text(), re.M) == told
    assert re.findall(r"`([0-9a-f]{32})`", (ROOT / "docs/use/status.md").read_text()) == told
    assert len(set(told)) == 4
    if not shutil.which("journalctl"):
        pytest.skip("there is no journalctl")
    (tmp_path / "var/lib/systemd/catalog").mkdir(parents=True)
    for words in (["--update-catalog"], ["--list-catalog"]):
        done = subprocess.run(["journalctl", f"--root={tmp_path}", *words], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == sorted(told)

# SPDX-License-Identifier: GPL-2.0
"""The recipes of docs/use/recipes.md, as typed, in a guest that sees the host's programs and QEMU's plain zoned drive.

A scene types blocks of the page's commands by their section and number, and looks at what they did in between.
"""

import re
import shlex
from pathlib import Path

import pages
import pytest
from mtlab.build import debian, sourcekernel
from mtlab.run.options import STOCK
from mtlab.run.testing import LabRun
from mtlab.util.base import ROOT

PAGE = ROOT / "docs/use/recipes.md"
OLD_DRIVE = 1 << 30
ENABLED = "/etc/systemd/system/timers.target.wants/fstrim.timer"
# What scenes call. A discard is seen where the device counts it, in blocks of 4 KiB.
COMMON = r"""set -e
typed() { echo "# $1"; eval "$1" </dev/null; }
fails() { if "$@"; then echo "no failure: $*"; exit 1; fi; }
fill() {
	mkdir "$1/small"
	for i in $(seq 50); do echo "$i" >"$1/small/$i"; done
	head -c 4M /dev/urandom >"$1/large"
	find "$1" -type f -print0 | xargs -0 sha256sum >/run/sums
	sync
}
verify() { sha256sum -c --quiet /run/sums; }
trimmed() { mtftl status --json fast | grep -o '"trimmed": *[0-9]*' | grep -o '[0-9]*$'; }
# Free 16 MiB in the file system of a folder, and let a command discard them.
trims() {
	local before
	head -c 16M /dev/zero >/srv/freed
	sync
	before=$(trimmed)
	rm /srv/freed
	sync
	eval "$1"
	echo "$(($(trimmed) - before)) blocks discarded"
	test "$(($(trimmed) - before))" -ge 4000
}
empty() {
	echo "=== $1"
	blkzone reset /dev/nvme0n1
	wipefs -q -a /dev/vda
}
closed() {
	mtftl probe /dev/nvme0n1 | grep MTFTL_CLEAN=1
	mtftl check /dev/nvme0n1
}
"""
# `page SECTION: NUMBER...` types these blocks of a section; "Begin" are those before the first section.
FILE_SYSTEM = """
system={system}
page Begin: 1
page File systems: {number}
fill /srv
page File systems: 4
closed
page File systems: 5
verify
case $system-$(uname -r) in
btrfs-6.1.*) ;;
btrfs-*) grep "/srv btrfs .*discard=async" /proc/mounts;;
esac
page File systems: 6
trims 'fstrim /srv'
page File systems: 4
closed
"""

# How each recipe with a volume group ends: stopped, opened again, and stopped.
LVM_STOPS = """page LVM, with a snapshot: 4
closed
page LVM, with a snapshot: 5
verify
page LVM, with a snapshot: 4
closed
"""

SCENES = {
    "ext4": FILE_SYSTEM.format(system="ext4", number=1),
    "XFS": FILE_SYSTEM.format(system="xfs", number=2),
    "btrfs": FILE_SYSTEM.format(system="btrfs", number=3),
    "timer": f"""
page Begin: 1
export SYSTEMD_OFFLINE=1
rm -f {ENABLED}
page A weekly fstrim: 1
test -L {ENABLED}
fill /srv
trims "$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/fstrim.service)"
verify
page File systems: 4
closed
""",
    "encryption": """
# The kernel looks for modules in the guest's own root folder only.
modprobe -a dm_crypt xts
page Begin: 1
page Encryption: 1
cryptsetup luksDump /dev/mapper/fast >dump
grep 'offset: 16777216 ' dump
grep 'sector: 4096 ' dump
fill /srv
fails fstrim /srv
page Encryption: 2
trims 'fstrim /srv'
page Encryption: 3
closed
page Encryption: 4
verify
trims 'fstrim /srv'
page Encryption: 3
closed
""",
    "LVM": """
page Begin: 1
page LVM, with a snapshot: 1
pvs --noheadings --units m -o pe_start | grep -w 1.00m
fill /srv
trims 'fstrim /srv'
page LVM, with a snapshot: 2
fails fstrim /srv
echo changed >/srv/small/1
sync
sed 's,/srv/,/mnt/before/,' /run/sums | sha256sum -c --quiet
echo 1 >/srv/small/1
before=$(trimmed)
page LVM, with a snapshot: 3
test "$(trimmed)" -gt "$before"
trims 'fstrim /srv'
""" + LVM_STOPS,
    "thin pool": """
page Begin: 1
page A thin pool: 1
fill /srv
head -c 16M /dev/zero >/srv/shared
sync
page A thin pool: 2
echo changed >/srv/small/1
sync
sed 's,/srv/,/mnt/before/,' /run/sums | sha256sum -c --quiet
echo 1 >/srv/small/1
trims 'fstrim /srv'
before=$(trimmed)
rm /srv/shared
sync
fstrim /srv
shared=$(trimmed)
test $((shared - before)) -lt 1000
page A thin pool: 3
test $(($(trimmed) - shared)) -ge 4000
page LVM, with a snapshot: 4
closed
page LVM, with a snapshot: 5
verify
trims 'fstrim /srv'
page LVM, with a snapshot: 4
mtftl open /dev/nvme0n1 fast
lvremove -q -y vg/pool
lvcreate -q -y --type thin-pool -c 512M -L 1G -n pool vg
dmesg | grep 'max discard sectors smaller than a block: Disabling discard passdown'
vgchange -q -an vg
mtftl close fast
closed
""",
    "files": """
page Begin: 1
mkfs.ext4 -q /dev/vda
mkdir /old
mount /dev/vda /old
mkdir /old/other
mount -t tmpfs tmpfs /old/other
echo other >/old/other/file
fill /old
ln /old/large /old/linked
page Moving files onto the device: 1
test /srv/large -ef /srv/linked
fails test -e /srv/other/file
sed -i '/other/d; s,/old/,/srv/,' /run/sums
umount /old/other /old
page File systems: 4
closed
page File systems: 5
verify
page File systems: 4
closed
""",
    "volume group": """
page Begin: 1
pvcreate -q /dev/vda
vgcreate -q vg /dev/vda
lvcreate -q -y -L 600M -n data vg
mkfs.ext4 -q /dev/vg/data
mount /dev/vg/data /srv
tune2fs -l /dev/vg/data | grep 'Block size: *4096$'
fill /srv
page Moving a volume group onto the device: 1
verify
trims 'fstrim /srv'
""" + LVM_STOPS,
}


def asked(scene: str) -> list[tuple[str, int]]:
    """The blocks that a scene types."""
    return [(section, int(number)) for section, number in re.findall(r"^page (.*): (\d+)$", scene, re.M)]


def script() -> str:
    """All scenes, each on an empty drive, with the page's commands in place."""
    page = pages.blocks(PAGE)
    scenes = "".join(f"(\nempty {shlex.quote(name)}\n{scene})\n" for name, scene in SCENES.items())
    return COMMON + re.sub(r"^page (.*): (\d+)$", lambda found: "\n".join(
        f"typed {shlex.quote(command)}" for command in page[found[1], int(found[2])]), scenes, flags=re.M)


def test_each_block_is_typed() -> None:
    assert {block for scene in SCENES.values() for block in asked(scene)} == set(pages.blocks(PAGE))


def test_recipes(pytestconfig: pytest.Config, lab_run: LabRun, tmp_path: Path) -> None:
    """Their commands work in the order of the page, and keep the data."""
    if pytestconfig.getoption("--kernel") in sourcekernel.DEBUG:
        pytest.skip("the debug kernels have no dm-crypt and no targets of LVM")
    debian.ensure("recipes")
    old = tmp_path / "old"
    with open(old, "wb") as file:
        file.truncate(OLD_DRIVE)
    result = lab_run(f"modprobe virtio_blk\n{script()}", profile=STOCK, host_root=True, timeout=1200,
                     qemu=[f"-drive file={old},format=raw,if=virtio,cache=unsafe"])
    assert result.status == 0, f"{result.output}\n{result.console[-3000:]}"

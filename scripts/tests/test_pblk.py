# SPDX-License-Identifier: GPL-2.0
"""pblk, as Linux 5.10 has it, on our Open-Channel drive. Skipped where `--kernel pblk` was never built."""

import json
import re
from pathlib import Path

import pytest
from mtlab.build import guest, sourcekernel
from mtlab.run.outcome import Result
from mtlab.run.testing import LabRun
from mtlab.util.base import ROOT

pytestmark = pytest.mark.skipif(not sourcekernel.built("pblk"), reason="scripts/lab run --kernel pblk builds it first")

OPEN_CHANNEL = {"nvme0.vendor-id": "0x1d1d", "nvme0.device-id": "0x1f1f", "zoned": "off", "flash.personality": "ocssd",
                "ms": "16"}
# Four dies, chunks of 1.5 MiB, 40 lines.
DRIVE = OPEN_CHANNEL | {"flash.channels": "2", "flash.dies": "2", "flash.block_pages": "24", "flash.size": "240M"}
NEW = "set -e; guest-pblk new nvme0n1 disk 0 3 25; size=$(($(cat /sys/block/disk/size) * 512))\n"
AGAIN = "guest-pblk remove disk; guest-pblk create nvme0n1 disk 0 3 25\n"


def _run(lab_run: LabRun, command: str) -> Result:
    result = lab_run(NEW + command + "\ndmesg | sed 's/^/kernel: /'", kernel="pblk", clock="virtual", profile="tlc",
                     device=DRIVE, append=sourcekernel.BOOT, timeout=500)
    assert result.status == 0, result.output
    said = re.findall(r"^kernel: .*pblk disk: (?!luns:4, lines:40).*", result.output, re.M)
    assert not said, said               # its own checks are silent
    return result


def test_users_and_restart(lab_run: LabRun) -> None:
    """What 1 to 64 users wrote is there, also after a clean restart; so is a file system."""
    users = "".join(f"""
        fio --name=w --filename=/dev/disk --rw=randwrite --bs=4k --direct=1 --size={16384 // n}k --offset=64m \\
            --offset_increment={16384 // n}k --numjobs={n} --thread --ioengine=libaio --iodepth=32 --verify=crc32c \\
            --do_verify=$DO --verify_state_save=0 --minimal >/dev/null""" for n in (1, 8, 64))
    check = users.replace("--rw=randwrite", "--rw=randread --verify_only").replace("$DO", "1").split("fio")[-1]
    result = _run(lab_run, users.replace("$DO", "1") + f"""
        dd if=/dev/disk of=before bs=1M skip=64 count=16 2>/dev/null
        mkfs.ext4 -q /dev/disk 48m; mount /dev/disk /mnt; cp /usr/bin/{{bash,fio,nvme,zbd,e2fsck}} /mnt/; sync
        md5sum /mnt/* 2>/dev/null > sums || true; wc -l < sums; umount /mnt
        {AGAIN} dd if=/dev/disk of=after bs=1M skip=64 count=16 2>/dev/null; cmp before after
        fio{check}
        mount /dev/disk /mnt; md5sum -cs sums; umount /mnt; e2fsck -fn /dev/disk""")
    assert re.search(r"^5$", result.output, re.M)


# Eight dies, a quarter to spare. pblk's drive has no buffer.
PBLK = OPEN_CHANNEL | {"flash.size": "480M", "flash.ws_opt": "8", "flash.buffer": "0"}
ZONED = {"flash.size": "640M", "zoned.zone_size": "16M", "zoned.zone_capacity": "12M"}
FLASH = {"flash.channels": "4", "flash.dies": "2", "flash.block_pages": "24"}
HELPERS = ROOT / "target/tests/guest.sh"
CREATE = "guest-pblk create nvme0n1 disk 0 7 25"
OPEN = "mtftl open /dev/nvme0n1 disk lanes=8 buffer_entries=1024 write_unit=8"
CUTS = {
    "pblk": ("pblk", PBLK, CREATE.replace("create", "new"), CREATE, "/dev/disk"),
    "dm-mtftl": ("6.12", ZONED, f"mtftl format --force --op 25% /dev/nvme0n1; {OPEN}", OPEN, "/dev/mapper/disk"),
}


@pytest.mark.parametrize("case", CUTS)
def test_power_cut(lab_run: LabRun, tmp_path: Path, case: str) -> None:
    """Eight threads write and flush until the power goes: what was flushed is there.

    pblk sends the drive no flush: of one with a buffer it loses what lay there, and may crash then.
    """
    kernel, drive, new, again, disk = CUTS[case]
    options = {"kernel": kernel, "clock": "virtual", "cpus": 8, "profile": "tlc", "device": drive | FLASH,
               "media": tmp_path / "media", "timeout": 300,
               "append": f"{sourcekernel.BOOT} pblk.write_buffer_size=1024"}
    loss = guest.program("guest-loss")
    # pblk survives no failing writes: it is never told how those ended that the cut met.
    cut = lab_run(f"""{new}; . ./guest.sh
        ./guest-loss fill {disk} state 32768
        ./guest-loss write {disk} state 8 &
        usleep 300000; flash 0x18 1000000; flash 1 0; cp state kept""", push=[loss, HELPERS], pull=["kept"], **options)
    assert cut.status == 0, cut.output
    (tmp_path / "kept").write_bytes(cut.files["kept"])
    mounted = lab_run(f"{again} >&2 && ./guest-loss judge {disk} kept; dmesg | grep 'pblk disk' >&2",
                      push=[loss, tmp_path / "kept"], **options)
    found = json.loads(re.findall(r"^{.*}$", mounted.output, re.M)[0])
    assert found["written"] > 10000 and found["foreign"] == found["unreadable"] == 0, mounted.output
    assert found["flushed_lost"] == 0 and "could not recover L2P" not in mounted.output, mounted.output

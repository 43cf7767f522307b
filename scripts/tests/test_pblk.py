# SPDX-License-Identifier: GPL-2.0
"""pblk, as Linux 5.10 has it, on our Open-Channel drive. Skipped where `--kernel pblk` was never built."""

import re

import pytest
from mtlab import sourcekernel
from mtlab.results import Result
from mtlab.testing import LabRun

pytestmark = pytest.mark.skipif(not sourcekernel.built("pblk"), reason="scripts/lab run --kernel pblk builds it first")

# Four dies, chunks of 1.5 MiB, 40 lines.
DRIVE = {"nvme0.vendor-id": "0x1d1d", "nvme0.device-id": "0x1f1f", "zoned": "off", "flash.personality": "ocssd",
         "ms": "16", "flash.channels": "2", "flash.dies": "2", "flash.block_pages": "24", "flash.size": "240M"}
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

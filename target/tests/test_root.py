# SPDX-License-Identifier: GPL-2.0
"""A Debian with systemd whose root file system is on mtftl: installed, rebooted, cut off, given another kernel.

The system is made of a clean Debian 13 (packages/make-root) by boot/system, with the packages as a user installs
them. It boots in the emulator, one QEMU a boot. The lab stands for the boot loader, and /boot for its disk. A power
cut kills QEMU, whose drives then lose what a drive loses. At each boot the guest runs boot/boot-test.
"""

import os
import random
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mtlab.build import target
from mtlab.run import qemu
from mtlab.run.options import PROFILES, Options
from mtlab.run.process import Tail
from mtlab.run.testing import LabRun
from mtlab.util.base import BUILD, digest, digest_files, fresh_folder, lock

HERE = Path(__file__).resolve().parent
ROOT = BUILD / "roots/trixie"
CUTS = 2
REBOOTS = 3                 # one of them into another kernel
PATIENCE = 1200             # seconds that a boot may take on a busy host
UUIDS = {name: "-".join(str(i) * n for n in (8, 4, 4, 4, 12)) for i, name in enumerate(("root", "data", "twin"), 1)}
# 4 MiB zones on four dies.
SMALL = {"zoned.zone_size": "4M", "zoned.zone_capacity": "4M", "zoned.max_open": "6", "zoned.max_active": "6",
         "flash.channels": "2", "flash.dies": "2", "flash.planes": "1", "flash.page": "16K", "flash.program_pages": "2",
         "flash.block_pages": "64", "flash.buffer": "1M"}
DRIVES = {"root": {"flash.size": "2G"}, "data": SMALL | {"flash.size": "128M"},
          "twin": SMALL | {"flash.size": "64M"}, "copy": SMALL | {"flash.size": "64M"}}
APPEND = ("root=/dev/mapper/root ro console=ttyS0 panic=-1 oops=panic mitigations=off nokaslr"
          " tsc=reliable no_timer_check audit=0 apparmor=0 random.trust_cpu=on ipv6.disable=1 udev.event_timeout=600"
          + qemu.CLOCK_BOOT["wall"])
INSTALL = r"""
set -e
drive() { # name: the drive of that serial number
	local at=$(grep -lx "$1 *" /sys/block/nvme*n1/device/serial)
	at=${at#/sys/block/}
	echo /dev/${at%%/*}
}
fill() { # folder: what boot-test looks at
	mkdir -p $1
	(cd $1; head -c 512K /dev/urandom >0; sha256sum 0 >sums; echo 0 >count)
}
for name in root data; do
	mtftl format --force --uuid $(uuid $name) $(drive $name) >/dev/null
	mtftl open $(drive $name) $name
	mkfs.ext4 -q /dev/mapper/$name
	mkdir /mnt/$name
	mount /dev/mapper/$name /mnt/$name
done
pushed=$PWD
cd /mnt/root
tar -x -f $system/root.tar
install $pushed/boot-test usr/local/sbin
install -m 644 $pushed/boot-test.service etc/systemd/system
ln -sf ../boot-test.service etc/systemd/system/multi-user.target.wants
cd /
fill /mnt/root/content
fill /mnt/data/content
umount /mnt/root /mnt/data
mtftl close root
mtftl close data
mtftl format --force --uuid $(uuid twin) $(drive twin) >/dev/null
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What boot/system makes of the packages: archives, kernels and what they boot with."""
    if os.geteuid() or not ROOT.with_suffix(".done").exists():
        pytest.skip(f"no clean trixie: target/tests/packages/make-root trixie {BUILD}, as root")
    sources = tmp_path_factory.mktemp("system") / "sources"
    subprocess.run([target.SOURCE / "packaging/source-tree", sources], check=True)
    files = {str(p.relative_to(sources)): p.read_bytes() for p in sources.rglob("*") if p.is_file()}
    makers = (HERE / "boot/system", HERE / "packages/in-root", ROOT.with_suffix(".done"))
    made_at = ROOT.with_suffix(".done").stat().st_mtime_ns
    key = digest(digest_files(files), *(p.read_bytes() for p in makers), str(made_at))
    folder = BUILD / "roots" / f"system-{key}"
    with lock("system"):
        if not folder.exists():
            with fresh_folder(folder) as part:
                done = subprocess.run([HERE / "packages/in-root", ROOT, sources, HERE / "boot/system", part],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                assert done.returncode == 0, done.stdout
    return folder


@dataclass
class Machine:
    """Four drives, and what the lab knows of the system on them."""

    folder: Path
    binary: Path
    system: Path
    number: int = 0
    newer: list[int] = field(default_factory=list)      # units newer than the checkpoint, of each drive that recovered
    safe: dict[str, int] = field(default_factory=lambda: {"/content": 0, "/srv/content": 0})

    def options(self) -> Options:
        return Options(cpus=1, memory="1G", media=self.folder / "root",
                       device={"nvme0.serial": "root"} | DRIVES["root"])

    def drives(self) -> list[str]:
        """QEMU's arguments for all drives but that of the root file system."""
        text = (PROFILES / "tlc.cfg").read_text()
        args = []
        for i, (name, settings) in enumerate(DRIVES.items()):
            if name == "root":
                continue
            profile = self.folder / f"{name}.cfg"
            profile.write_text(text.replace('"ns0"', f'"ns{i}"').replace('"nvme0"', f'"nvme{i}"'))
            args += ["-device", f"nvme,id=nvme{i},serial={name}", "-readconfig", str(profile)]
            for key, value in ({"flash.media": str(self.folder / name)} | settings).items():
                args += ["-set", f"device.ns{i}.{key}={value}"]
        return args

    def install(self, lab_run: LabRun) -> None:
        uuids = "".join(f"{name}) echo {uuid};; " for name, uuid in UUIDS.items())
        options = self.options()
        done = lab_run(f"system={self.system}; uuid() {{ case $1 in {uuids}esac; }}\n{INSTALL}", cpus=options.cpus,
                       memory=options.memory, media=options.media, device=options.device, qemu=self.drives(),
                       host_root=True, timeout=PATIENCE,
                       push=[HERE / "boot/boot-test", HERE / "boot/boot-test.service"])
        assert done.status == 0, done.output
        shutil.copy(self.folder / "twin", self.folder / "copy")

    def boot(self, asked: str, kernel: int, cut_after: int = 0) -> list[str]:
        """Boot once, until the guest ends or has made so many numbers safe; what the guest said."""
        self.number += 1
        console, output = (self.folder / f"{name}-{self.number}" for name in ("console", "output"))
        output.touch()
        update = ["-drive", f"file={self.system}/update.tar,format=raw,if=virtio,readonly=on"]
        args = [*qemu.machine_arguments(self.binary, self.options(), qemu.clock_arguments(self.options(), "tcg")),
                "-kernel", str(self.system / f"vmlinuz-{kernel}"), "-initrd", str(self.system / f"initrd-{kernel}"),
                "-append", f"{APPEND} boot-test={asked}", "-serial", f"file:{console}", "-serial", f"file:{output}",
                *qemu.device_arguments(self.options(), self.folder), *self.drives(),
                *(update if asked == "update" else [])]
        said = Tail(output, None)
        with open(self.folder / f"qemu-{self.number}", "wb") as errors:
            child = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        end = time.monotonic() + PATIENCE
        try:
            while child.poll() is None and time.monotonic() < end:
                said.poll()
                if cut_after and said.text.count(" safe ") >= cut_after:
                    break
                time.sleep(0.02)
        finally:
            ended = child.poll()
            child.kill()
            child.wait()
        said.poll()
        # The kernel says so if it did not find a clean stop.
        self.newer = [int(n) for n in re.findall(r"mount: (\d+) units newer", console.read_text(errors="replace"))]
        what = f"boot {self.number} ({asked})\n{said.text}\n{console.read_text(errors='replace')[-4000:]}"
        assert f"@ ready for {asked}\n" in said.text, what
        assert cut_after or ended == 0, what
        return [line[2:] for line in said.text.splitlines() if line.startswith("@ ")]

    def judge(self, said: list[str], kernel: str, before: str) -> list[str]:
        """Whether all is there that was durable, in both file systems; hands back what else the guest said.

        A reboot closes the drive of data. It cannot close that of the root file system, but leaves nothing that is
        newer than its checkpoint.
        """
        number = str(self.number)
        assert said[0] == f"kernel {kernel}", said
        if before == "cut":
            assert len(self.newer) == 2 and min(self.newer) > 0, self.newer
        else:
            assert self.newer == ([0] if before else []), self.newer
        rest = [line for line in said[1:] if " safe " not in line]
        for folder in self.safe:
            assert rest.pop(0) == f"{folder} has {number} files", said
            counted = re.fullmatch(rf"{folder} counted (\d+)", rest.pop(0))
            assert counted and self.safe[folder] <= int(counted[1]) <= self.safe[folder] + 1, said
            self.safe[folder] = max(int(x) for x in [counted[1], *re.findall(rf"^{folder} safe (\d+)$", "\n".join(said),
                                                                             re.M)])
        assert rest.pop().startswith("ready for "), said
        return rest


def test_root_on_mtftl(lab_run: LabRun, emulator_binary: Path, system: Path, tmp_path: Path) -> None:
    """Whatever ends a boot, the next one needs nobody, and finds what was durable; a reboot is a clean stop."""
    machine = Machine(tmp_path, emulator_binary, system)
    kernels = (system / "kernels").read_text().split()
    chance = random.Random(1)
    middle = ["cut"] * CUTS + ["reboot"] * (REBOOTS - 2)
    chance.shuffle(middle)
    middle.insert(len(middle) // 2, "update")
    machine.install(lab_run)
    kernel, before = 1, ""
    for asked in ["first", *middle, "last"]:
        said = machine.boot(asked, kernel, chance.randrange(5, 60) if asked == "cut" else 0)
        rest = machine.judge(said, kernels[kernel - 1], before)
        if asked == "first":
            twins = rest.pop(4)
            assert re.fullmatch("twin: /dev/nvme[0-9]n1 and /dev/nvme[0-9]n1 have it", twins), twins
            assert rest == [f"drive mtftl {UUIDS['root']}", "mtftltab: line 2", "data is active", "twin is failed",
                            "failed: mtftl@twin.service"], rest
        else:
            assert rest == (["updated"] if asked == "update" else []), rest
        kernel = 2 if asked == "update" else kernel
        before = asked

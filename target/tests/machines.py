# SPDX-License-Identifier: GPL-2.0
"""Guests that share a network, on the wall clock: a test tells each what to do, and kills it as a power cut does.

A guest reads its commands from a folder of the host (9p), one file after the other, and puts beside each what it said
and how it ended. Frames go from one socket to the other without a connection: what is sent to a dead guest is lost.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from mtlab.util.base import ROOT

NETWORK = "10.0.0."
DEVICE = "flash.size=96M,zoned.zone_size=4M,zoned.zone_capacity=4M,flash.channels=2,flash.dies=2,flash.planes=1," \
         "flash.page=16K,flash.program_pages=1,flash.block_pages=64"
STARTS = 600            # seconds that a boot may take on a busy host
PATIENT = "watchdog_thresh=60"      # two guests share the host: a CPU of theirs may stand still for long
# What a guest does: a network, a name as a package of nvme-cli gives it, and then command after command.
LOOP = f"""modprobe -a virtio_pci 9pnet_virtio 9p virtio_net
mkdir /told
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none told /told
ip link set eth0 up
ip addr add {NETWORK}%(number)d/24 dev eth0
mkdir -p /etc/nvme
echo 5e9b4a3c-0000-4000-8000-00000000000%(number)d > /etc/nvme/hostid
echo nqn.2014-08.org.nvmexpress:uuid:$(cat /etc/nvme/hostid) > /etc/nvme/hostnqn
for n in $(seq 100000); do
	until [ -e /told/$n.sh ]; do usleep 50000; done
	bash -e /told/$n.sh > /told/$n.said 2>&1 < /dev/null
	echo $? > /told/$n.ended
	mv /told/$n.ended /told/$n.status
done"""


class Machine:
    """A guest with a drive that outlives it. The other one of a pair has the other number of 1 and 2."""

    def __init__(self, folder: Path, number: int, *packages: str) -> None:
        self.folder, self.number, self.packages = folder, number, packages
        self.told = folder / f"told{number}"
        self.told.mkdir()
        self.lab: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Let it begin to boot, with what its drive holds."""
        for old in self.told.iterdir():
            old.unlink()
        self.count = 0
        ends = [f"{self.folder}/net{number}" for number in (self.number, 3 - self.number)]
        # Both have their own address on the wire.
        network = (f"-netdev dgram,id=net,local.type=unix,local.path={ends[0]},remote.type=unix,remote.path={ends[1]}"
                   f" -device virtio-net-pci,netdev=net,romfile=,mac=52:54:00:00:00:0{self.number}")
        shared = f"-virtfs local,path={self.told},mount_tag=told,security_model=none"
        self.lab = subprocess.Popen(
            [sys.executable, "-B", ROOT / "scripts/lab", "run", "--profile", "tlc", "--device", DEVICE,
             "--media", self.folder / f"drive{self.number}", "--timeout", "100000", "--append", PATIENT,
             "--with", *self.packages, f"--qemu={network}", f"--qemu={shared}", "--", LOOP % {"number": self.number}],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"TMPDIR": str(self.folder)})

    def begin(self, command: str) -> int:
        """Let it run a command; returns the command's number."""
        self.count += 1
        part = self.told / "next"
        part.write_text(command + "\n")
        part.rename(self.told / f"{self.count}.sh")
        return self.count

    def end(self, number: int, seconds: float = 300) -> str:
        """Wait for a command to end well; returns what it said."""
        status = self.told / f"{number}.status"
        limit = time.monotonic() + seconds
        while not status.exists():
            lab = self.lab
            assert lab and lab.poll() is None, f"machine {self.number} ended: {lab and lab.communicate()[0]}"
            assert time.monotonic() < limit, \
                f"machine {self.number} still runs {self._text(number, 'sh')}\n{self._text(number, 'said')}"
            time.sleep(0.05)
        said = self._text(number, "said")
        assert int(status.read_text()) == 0, f"machine {self.number}: {self._text(number, 'sh')}\n{said}"
        return said

    def tell(self, command: str, seconds: float = 300) -> str:
        """Let it run a command, and wait for its end."""
        return self.end(self.begin(command), seconds)

    def kill(self) -> None:
        """From one instant to the next it is no more; its drive has what flash had then."""
        if not self.lab or self.lab.poll() is not None:
            return
        children = Path(f"/proc/{self.lab.pid}/task/{self.lab.pid}/children").read_text().split()
        self.lab.send_signal(signal.SIGKILL)        # the emulator is bound to its life
        self.lab.communicate()
        while any(_lives(int(child)) for child in children):
            time.sleep(0.01)

    def _text(self, number: int, kind: str) -> str:
        path = self.told / f"{number}.{kind}"
        return path.read_text(errors="replace") if path.exists() else ""


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

# SPDX-License-Identifier: GPL-2.0
"""Two machines with a mirror across them, by the commands of docs/use/several.md: one is killed, the other goes on."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pages
import pytest
from machines import STARTS, Machine
from mtlab.util.base import ROOT

PAGE = ROOT / "docs/use/several.md"
SECTION = "Two machines"
EXPORT, CONNECT, CREATE, REMOVE, AGAIN, TAKE_OVER = range(2, 8)     # blocks of that section; the first opens the drive
FIO = "fio --name=job --filename=/dev/md0 --direct=1 --ioengine=io_uring --verify=crc32c --verify_fatal=1" \
      " --verify_dump=0 --bs=4k --iodepth=8 --size=8M"
# Each block that the load writes says where it lies, whenever it was written.
PLACES = "--offset=8M --verify=pattern --verify_pattern=%o"
PACE = 100              # writes a second: two guests share the host with what resynchronises
LOAD = f"{FIO} --rw=randwrite --do_verify=0 {PLACES}"


class Pair:
    """The machine that writes, and the other one."""

    def __init__(self, first: Machine, second: Machine) -> None:
        self.page = pages.blocks(PAGE)
        self.active, self.passive = first, second
        for machine in (first, second):
            machine.tell("mtftl format /dev/nvme0n1")
            self.join(machine)
        self.connect()
        self.types(self.active, CREATE)
        # All of what the load overwrites can be verified from then on.
        self.active.tell(f"{LOAD} --rw=write")

    def types(self, machine: Machine, *numbers: int) -> None:
        """Type blocks of the page, which is written for the first machine of the two."""
        for number in numbers:
            commands = "\n".join(self.page[SECTION, number])
            machine.tell(commands.replace("10.0.0.2", "10.0.0.1") if machine.number == 2 else commands)

    def join(self, machine: Machine) -> None:
        """Its drive is open, and the other machine may use it."""
        self.types(machine, 1, EXPORT)
        machine.tell("modprobe raid1; echo 100000 > /proc/sys/dev/raid/speed_limit_min")

    def connect(self) -> None:
        """The other machine's device is there; without udev nothing tells of it."""
        self.types(self.active, CONNECT)
        self.active.tell("until [ -b /dev/nvme1n1 ]; do usleep 10000; done")

    def synced(self, turn: int) -> None:
        """Blocks that no misfortune may take."""
        self.active.tell(f"{FIO} --rw=randwrite --randseed={turn} --do_verify=0 --end_fsync=1")

    def load(self) -> None:
        self.active.tell(f"{LOAD} --rate_iops={PACE} --time_based --runtime=10h --output=load --eta=never & "
                         "echo $! > job")
        self.goes_on()

    def goes_on(self) -> None:
        """The load writes, from now on."""
        self.active.tell("written() { awk '{ print $5 }' /sys/block/md0/stat; }\n"
                         f"before=$(written)\nuntil [ $(written) -gt $((before + {PACE})) ]; do usleep 100000; done")

    def is_as_written(self, turn: int) -> None:
        """What was synced is there; and each block that the load wrote is whole, and its own."""
        self.active.tell(f"{FIO} --rw=randwrite --randseed={turn} --verify_only=1")
        self.active.tell(f"{FIO} --rw=read {PLACES}")

    def resynchronises(self) -> None:
        """The machine that died is back: its half follows, beside the load, until both are the same."""
        self.join(self.passive)
        self.connect()
        self.types(self.active, AGAIN)
        self.active.tell("until grep -q '\\[UU\\]' /proc/mdstat && grep -q idle /sys/block/md0/md/sync_action\n"
                         "do usleep 100000; done")
        self.active.tell("kill -INT $(cat job); wait; while kill -0 $(cat job) 2>/dev/null; do usleep 10000; done\n"
                         "cat load; ! grep 'err=[^ ]*[1-9]' load")
        assert self.active.tell("echo check > /sys/block/md0/md/sync_action\n"
                                "until grep -q idle /sys/block/md0/md/sync_action; do usleep 100000; done\n"
                                "cat /sys/block/md0/md/mismatch_cnt") == "0\n"


@pytest.fixture
def pair(emulator_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    with contextlib.ExitStack() as running:
        machines = [Machine(folder, number, "mdadm") for number in (1, 2)]
        for machine in machines:
            running.callback(machine.kill)
            machine.start()
        for machine in machines:
            machine.tell("true", STARTS)
        yield Pair(*machines)


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=[pytest.mark.night, pytest.mark.timeout(7200)])])
def test_one_of_two_machines_is_killed(pair: Pair, kills: int) -> None:
    """By turns the one that only keeps its half, and the one that writes."""
    for turn in range(kills):
        pair.synced(turn)
        pair.load()
        if turn % 2:
            pair.active.kill()
            pair.active, pair.passive = pair.passive, pair.active
            pair.types(pair.active, TAKE_OVER)
            pair.is_as_written(turn)
            pair.load()
        else:
            pair.passive.kill()
            pair.active.tell("until grep -q '\\[U_\\]\\|\\[_U\\]' /proc/mdstat; do usleep 100000; done")
            pair.goes_on()
            pair.types(pair.active, REMOVE)
        pair.passive.start()
        pair.passive.tell("true", STARTS)
        pair.resynchronises()
        pair.is_as_written(turn)

# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU without a guest: its monitor, and a test that drives the flash device's registers itself.

Used by the tests of the flash device. A Monitor's machine stands still. A Driver's has no processor at all: the test
reads and writes memory and registers, and says how far virtual time goes, so what a hostile guest does happens at a
known instant and takes milliseconds.
"""

import copy
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROFILES = Path(__file__).resolve().parent.parent / "profiles"
BARE = ["-nodefaults", "-display", "none"]
STOPPED = [*BARE, "-machine", "q35", "-accel", "tcg", "-global", "apic-common.vapic=off", "-S"]
BAR, CONFIG = 0xE0000000, 0x80000000 | 4 << 11         # the controller is device 4
WRITE, READ, COMPARE, VERIFY, COPY, ZONE_SEND, APPEND, FLUSH = 0x01, 0x02, 0x05, 0x0C, 0x19, 0x79, 0x7D, 0x00
WRITE_ZEROES, DSM = 0x08, 0x09
DATA = 0x800000                                         # the tests' own memory begins here
NOWHERE = 0xD0000000                                    # no memory is there
HANG = 300                                              # seconds without an answer that are a hang


def device(media: Path, profile: str = "dram", **settings: str) -> list[str]:
    args = ["-device", "nvme,id=nvme0,serial=mtftl,addr=4", "-readconfig", str(PROFILES / f"{profile}.cfg"),
            "-set", f"device.ns0.flash.media={media}"]
    for key, value in settings.items():
        args += ["-set", f"device.ns0.{key}={value}"]
    return args


class Monitor:
    """A QEMU that does not run its guest, and its QMP socket."""

    machine = STOPPED

    def __init__(self, binary: Path, bios: Path, *args: str) -> None:
        ours, theirs = socket.socketpair()
        test, served = socket.socketpair()
        for end in (ours, test):
            end.settimeout(HANG)
        # what is freed is overwritten, so that its use shows
        self.process = subprocess.Popen(
            [binary, *self.machine, "-bios", str(bios), "-chardev", f"socket,id=qmp,fd={theirs.fileno()}",
             "-mon", "chardev=qmp,mode=control", "-chardev", f"socket,id=qtest,fd={served.fileno()}", *args],
            pass_fds=[theirs.fileno(), served.fileno()], env=os.environ | {"MALLOC_PERTURB_": "165"})
        theirs.close()
        served.close()
        self.wire = test.makefile("rw")
        self.stream = ours.makefile("rw")
        self.stream.readline()
        self("qmp_capabilities")

    def __call__(self, name: str, **arguments: object) -> dict:
        self.stream.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = json.loads(self.stream.readline())
            if "event" not in answer:
                return answer

    def get(self, name: str, ns: str = "ns0") -> object:
        return self("qom-get", path=f"/machine/peripheral/{ns}", property=f"flash.{name}")["return"]

    def set(self, name: str, value: object, ns: str = "ns0") -> dict:
        return self("qom-set", path=f"/machine/peripheral/{ns}", property=f"flash.{name}", value=value)

    def stats(self) -> dict:
        return json.loads(str(self.get("stats")))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Driver(Monitor):
    """A driver of one NVMe controller, with one pair of queues beside the admin queues; all are polled."""

    machine = [*BARE, "-machine", "pc,accel=qtest", "-global", "apic-common.vapic=off", "-m", "64M",
               "-qtest", "chardev:qtest", "-qtest-log", "/dev/null"]
    depth = 1024

    def __init__(self, binary: Path, bios: Path, *args: str, cq: int = 0x300000) -> None:
        super().__init__(binary, bios, *args)
        self.begin(BAR, CONFIG, 0x100000, cq)

    def begin(self, bar: int, config: int, memory: int, cq: int) -> None:
        """Take a controller into use: where its registers are to lie, its PCI address, memory for its queues."""
        self.bar, self.address = bar, config
        self.config(0x10, bar)
        self.config(0x14, 0)
        self.config(0x04, 6)
        self.tail, self.head = [0, 0], [0, 0]
        self.sq, self.cq = [memory, memory + 0x100000], [memory + 0x80000, cq]
        self.reg(0x24, 63 << 16 | 63)
        self.reg(0x28, self.sq[0])
        self.reg(0x30, self.cq[0])
        self.reg(0x14, 1 | 6 << 4 | 6 << 16 | 4 << 20)
        assert self.reg(0x1C) & 1
        assert self.admin(5, prp=cq, cdw10=(self.depth - 1) << 16 | 1, cdw11=1)[0] == 0
        assert self.admin(1, prp=self.sq[1], cdw10=(self.depth - 1) << 16 | 1, cdw11=1 << 16 | 1)[0] == 0

    def beside(self, device: int) -> "Driver":
        """A driver of another controller of the same machine, with memory of its own for its queues."""
        other = copy.copy(self)
        other.begin(BAR + 0x100000, 0x80000000 | device << 11, 0x400000, 0x600000)
        return other

    def qtest(self, line: str) -> str:
        self.wire.write(line + "\n")
        self.wire.flush()
        answer = self.wire.readline().split()
        assert answer[:1] == ["OK"], (line, answer)
        return answer[-1]

    def config(self, at: int, value: int) -> None:
        self.qtest(f"outl 0xcf8 {self.address | at}")
        self.qtest(f"outl 0xcfc {value}")

    def reg(self, at: int, value: int | None = None) -> int:
        if value is None:
            return int(self.qtest(f"readl {self.bar + at}"), 0)
        self.qtest(f"writel {self.bar + at} {value}")
        return value

    def store(self, at: int, data: bytes) -> None:
        self.qtest(f"write {at} {len(data)} 0x{data.hex()}")

    def load(self, at: int, size: int) -> bytes:
        return bytes.fromhex(self.qtest(f"read {at} {size}")[2:])

    def step(self, ns: int) -> None:
        """QEMU calls it a failure if the clock stands where it did: a step that is drawn may be none."""
        if ns:
            self.qtest(f"clock_step {ns}")

    def place(self, queue: int, slot: int, opcode: int, nsid: int = 0, prp: int = 0, prp2: int = 0, mptr: int = 0,
              **cdw: int) -> None:
        """A command in a slot of a queue; its identifier is the slot."""
        words = [cdw.get(f"cdw{i}", 0) for i in range(10, 16)]
        second = cdw.get("cdw2", 0) | cdw.get("cdw3", 0) << 32
        command = struct.pack("<IIQQQQ6I", opcode | slot << 16, nsid, second, mptr, prp, prp2, *words)
        self.store(self.sq[queue] + 64 * slot, command)

    def submit(self, queue: int, opcode: int, **fields: int) -> int:
        """Rings the doorbell too; the command's identifier."""
        slot = self.tail[queue]
        self.place(queue, slot, opcode, **fields)
        self.tail[queue] = (slot + 1) % (64, self.depth)[queue]
        self.reg(0x1000 + 8 * queue, self.tail[queue])
        return slot

    def ended(self, queue: int) -> Iterator[tuple[int, int, int]]:
        """What has completed: identifier, status, result."""
        depth = (64, self.depth)[queue]
        while True:
            at = self.head[queue]
            result, _, word = struct.unpack("<QII", self.load(self.cq[queue] + 16 * (at % depth), 16))
            if (word >> 16 & 1) == at // depth % 2:
                return
            self.head[queue] += 1
            self.reg(0x1004 + 8 * queue, self.head[queue] % depth)
            yield word & 0xFFFF, word >> 17 & 0x7FF, result

    def admin(self, opcode: int, **fields: int) -> tuple[int, int]:
        """Status and result of a command that ends at once, or within the next virtual second."""
        return self.wait(0, self.submit(0, opcode, **fields))

    def io(self, opcode: int, nsid: int = 1, **fields: int) -> tuple[int, int]:
        return self.wait(1, self.submit(1, opcode, nsid=nsid, **fields))

    def wait(self, queue: int, cid: int) -> tuple[int, int]:
        for _ in range(1000):
            for ended, status, result in self.ended(queue):
                assert ended == cid
                return status, result
            self.step(1000000)
        raise AssertionError(f"command {cid} of queue {queue} does not end")

    def write(self, lba: int, count: int = 1, byte: int = 0x61, fua: int = 0) -> int:
        """Up to two blocks of that byte; the status."""
        self.store(DATA, bytes([byte]) * (4096 * count))
        return self.io(WRITE, prp=DATA, prp2=DATA + 4096, cdw10=lba, cdw12=count - 1 | fua << 30)[0]

    def read(self, lba: int, **fields: int) -> int | None:
        """A block's first byte, or None when it cannot be read."""
        status, _ = self.io(READ, prp=DATA, cdw10=lba, **fields)
        return None if status else self.load(DATA, 1)[0]


@contextmanager
def driver(binary: Path, bios: Path, *args: str, **options: int) -> Iterator[Driver]:
    running = Driver(binary, bios, *args, **options)
    try:
        yield running
        assert running.process.poll() is None
    finally:
        running.end()

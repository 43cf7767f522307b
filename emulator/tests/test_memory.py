# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of memory: its closed forms on the host, and programs on the bare machine that feel it (vtime/).

All figures are nanoseconds of the profile "server" unless a test says otherwise; accel/tcg/memory-profiles.c has them.
"""

import functools
import subprocess
from pathlib import Path

import pytest
from lockstep import (
    ATOMIC,
    FLAG,
    LOCKSTEP,
    QUEUE,
    READ,
    RWSEM,
    STORE,
    SWAP,
    TICKET,
    Lines,
    build,
    busy_host,
    command,
    monitored,
    parsed,
    refused,
    run,
)

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / "accel/tcg"
L2, L3, DRAM, FAR, STREAM, CLEAN, MODIFIED, LOCKED = 4, 21, 85, 139, 5, 43, 51, 5
TIME = 200000
PERIOD = 2000
NEAR = pytest.approx


def test_model(tmp_path: Path) -> None:
    """Closed forms, and that a CPU that may write is alone, on the host, under the sanitizers."""
    program = tmp_path / "test_memory"
    subprocess.run(["gcc", "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
                    f"-I{MODEL}", "-o", program, HERE / "test_memory.c", MODEL / "memory-model.c",
                    MODEL / "memory-profiles.c", "-lcmocka"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("emulator_binary")
@pytest.mark.parametrize("icount, why", [
    ("shift=0,sleep=off,memory=server", "speed, spin, memory, stall and schedule need quantum"),
    ("shift=1,sleep=off,quantum=100,memory=server", "memory needs shift=0"),
    ("shift=0,sleep=off,quantum=100,sharing=file", "sharing needs memory"),
    ("shift=0,sleep=off,sharing=file", "sharing needs memory"),
])
def test_bad_options(icount: str, why: str) -> None:
    assert refused(icount) == why


@pytest.fixture(scope="session")
def guest(tmp_path_factory, emulator_binary):
    """Run a program; what it said."""
    folder = tmp_path_factory.mktemp("memory")
    image = functools.partial(build, folder)

    def start(name: str, cpus: int = 1, quantum: int = 1000, memory: str = "server", more: str = "",
              nodes: tuple[int, ...] = (), **defines: int) -> Lines:
        icount = LOCKSTEP.format(quantum) + (f",memory={memory}{more}" if memory else "")
        told = [x for i, size in enumerate(nodes) for x in (
            "-object", f"memory-backend-ram,id=m{i},size={size}M", "-numa", f"node,nodeid={i},cpus={i},memdev=m{i}")]
        return parsed(run(image(name, **defines), icount, cpus, folder / "out", "-m", "256M",
                          *(["-smp", f"sockets={len(nodes)}"] if nodes else []), *told))

    return start


def shared(guest, cpus: int, what: int, **options: int) -> int:
    """How often CPUs did it, all together."""
    return sum(guest("share", cpus, WHAT=what, **options)["done"])


@pytest.mark.parametrize("memory, size, takes", [
    ("", 65536, 0), ("server", 32, 0), ("server", 512, L2), ("server", 16384, L3), ("server", 131072, DRAM),
    ("desktop", 16, 0), ("desktop", 128, 3), ("desktop", 4096, 10), ("desktop", 32768, 62)])
def test_four_plateaus(guest, memory, size, takes):
    """A chain through memory: an instruction a step, the loop's, and the way of a line from where it fits."""
    took = guest("caches", memory=memory, SIZE=size)["took"][0] / 65536
    assert took == NEAR(1.125 + takes, rel=0.01)


@pytest.mark.parametrize("nodes, takes", [((), (DRAM + FAR) / 2), ((240, 16), DRAM), ((16, 240), FAR)])
def test_memory_is_where_the_guest_is_told(guest, nodes, takes):
    """From 16 MiB on, seen by the first CPU; without nodes it lies on both sockets in turn."""
    took = guest("caches", cpus=2, memory="server2", nodes=nodes, SIZE=131072)["took"][0] / 65536
    assert took == NEAR(1.125 + takes, rel=0.01)


@pytest.mark.usefixtures("emulator_binary")
@pytest.mark.parametrize("memory, cpus", [("server", (0, 1)), ("server2", (1, 0))])
def test_other_nodes_than_the_sockets_are_refused(tmp_path, memory, cpus):
    """The model knows no latencies for them."""
    nodes = [x for i, cpu in enumerate(cpus) for x in (
        "-object", f"memory-backend-ram,id=m{i},size=32M", "-numa", f"node,nodeid={i},cpus={cpu},memdev=m{i}")]
    image = build(tmp_path, "caches")
    done = subprocess.run(command(image, f"{LOCKSTEP.format(1000)},memory={memory}", 2, tmp_path / "out",
                                  "-smp", "sockets=2", *nodes), timeout=60, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith(f"nodes and their CPUs are not the sockets of memory '{memory}'\n")


@pytest.mark.usefixtures("emulator_binary")
def test_cpus_neither_come_nor_go(tmp_path):
    """The model is made for those that the machine begins with; without it the same CPU is welcome."""
    image = build(tmp_path, "caches")
    late = {"driver": "qemu64-x86_64-cpu", "socket-id": 1, "core-id": 0, "thread-id": 0}
    for memory in (",memory=server", ""):
        icount = f"{LOCKSTEP.format(1000)}{memory}"
        with monitored(command(image, icount, 1, tmp_path / "out", "-S", "-smp", "1,maxcpus=2,sockets=2")) as monitor:
            assert monitor.refused("device_add", **late) == bool(memory)
            first = "/machine/unattached/device[0]"
            assert monitor.execute("qom-get", path=first, property="hotpluggable") == (not memory)


def test_streams_are_prefetched(guest):
    """One line of each page's 64 is not."""
    took = guest("caches", SIZE=131072, STREAM=1)["took"][0] / 65536
    assert took == NEAR(1.125 + (63 * STREAM + DRAM) / 64, rel=0.01)


@pytest.mark.parametrize("cpus", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("what, alone", [(ATOMIC, 3 + LOCKED), (STORE, 3)])
def test_a_contended_line_changes_hands_each_time(guest, cpus, what, alone):
    """All together as often as it can; on lines of their own each is as fast as alone."""
    shares = shared(guest, cpus, what)
    if cpus > 1:
        assert shares == NEAR(TIME / MODIFIED, rel=0.1)
    padded = shared(guest, cpus, what, STEP=16)
    assert padded == NEAR(cpus * shared(guest, 1, what, STEP=16), rel=0.02)
    assert padded == NEAR(cpus * TIME / (alone + 0.8), rel=0.1)


@pytest.mark.parametrize("quantum", [10, 100, 1000, 10000])
def test_the_quantum_does_not_matter(guest, quantum):
    for cpus in (2, 8, 32):
        assert shared(guest, cpus, ATOMIC, quantum=quantum) == NEAR(TIME / MODIFIED, rel=0.1)


@pytest.mark.parametrize("quantum", [10, 1000])
def test_ping_pong(guest, quantum):
    """A swap is one way of the line; a flag that the other one waits for is two: the store's and the load's."""
    turns = 2 * TIME // 200 * 8
    for what, ways in ((SWAP, 1), (FLAG, 2)):
        took = guest("share", 2, quantum=quantum, WHAT=what)["done"][0]
        assert took / turns == NEAR(ways * MODIFIED, rel=0.1)


@pytest.mark.parametrize("quantum, least", [(10, 1.8), (1000, 0.9)])
@pytest.mark.parametrize("readers", [1, 7, 31])
def test_read_mostly(guest, readers, quantum, least):
    """A write costs a reader two ways of the line, the write's own and its load's; between writes it reads as if alone.

    With a large quantum it may see the write late, and then does not wait for the write's own.
    """
    writes, *reads = guest("share", readers + 1, quantum=quantum, WHAT=READ)["done"]
    alone = guest("share", 2, memory="", WHAT=READ)["done"][1]
    assert writes == NEAR(TIME / PERIOD, rel=0.1)
    for count in reads:
        ways = (1 - count / alone) * TIME / (writes * MODIFIED)
        assert least <= ways <= 2.4


@pytest.mark.parametrize("quantum", [10, 1000])
@pytest.mark.parametrize("cpus", [4, 8, 16, 32])
@pytest.mark.parametrize("what, takes", [(TICKET, 2 * MODIFIED + L3), (QUEUE, 2 * MODIFIED)])
def test_locks_change_hands(guest, what, takes, cpus, quantum):
    """From owner to owner: its store's way and the next one's load's; all but the first to look have it from L3."""
    time = 1000000
    assert time / shared(guest, cpus, what, quantum=quantum, TIME=time) == NEAR(takes, rel=0.1)


@pytest.mark.parametrize("quantum", [10, 1000])
@pytest.mark.parametrize("cpus", [2, 8, 64])
def test_readers_of_one_lock_wait_for_each_other(guest, cpus, quantum):
    """None writes, and still its count changes hands twice for each that reads."""
    time = 1000000
    assert time / shared(guest, cpus, RWSEM, quantum=quantum, TIME=time) == NEAR(2 * MODIFIED, rel=0.1)


def test_same_bytes_in_every_run(guest):
    quiet = guest("mix", 8)
    with busy_host():
        assert guest("mix", 8) == quiet
    assert guest("mix", 8, memory="desktop") != quiet
    assert guest("mix", 8, memory="") != quiet


def test_sharing_is_written_down(guest, tmp_path):
    """The shared line is the dearest, with the words that each CPU wrote; what is padded is not there."""
    for step, lines in ((0, True), (16, False)):
        guest("share", 4, more=f",sharing={tmp_path}/sharing", WHAT=STORE, STEP=step)
        rows = [line.split() for line in (tmp_path / "sharing").read_text().splitlines()]
        dearest = max((row for row in rows if row[0] == "share"), key=lambda row: int(row[5]))
        stores = [row for row in rows if row[0] == "share" and row[7] == dearest[7] and row[2] == "1"]
        if lines:
            assert len({row[8] for row in stores}) == 4
            assert {int(row[6], 16) for row in stores} == {1, 2, 4, 8}
            assert sum(int(row[4]) for row in stores) == NEAR(TIME / MODIFIED, rel=0.1)
        else:
            assert sum(int(row[4]) for row in stores) < 100


@pytest.mark.parametrize("memory, far", [("server", 0), ("server2", 1)])
def test_what_comes_from_the_other_socket_is_told(guest, tmp_path, memory, far):
    """Two CPUs, one on each of two sockets, store to one line: each time it comes from there."""
    guest("share", 2, memory=memory, more=f",sharing={tmp_path}/sharing", WHAT=STORE)
    rows = [line.split() for line in (tmp_path / "sharing").read_text().splitlines()]
    dearest = max((row for row in rows if row[0] == "share"), key=lambda row: int(row[5]))
    assert int(dearest[4]) > 100 and int(dearest[3]) == far

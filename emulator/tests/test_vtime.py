# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtual time, shown by programs on the bare machine (vtime/): they are all the firmware there is."""

import fcntl
import functools
import os
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from lockstep import CONTENTION, LOCKSTEP, build, busy_host, command, monitored, parsed, refused, run, throughput

pytestmark = pytest.mark.usefixtures("emulator_binary")


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return functools.partial(build, tmp_path_factory.mktemp("vtime"))


@pytest.mark.parametrize("icount, why", [
    ("quantum=100", "quantum needs a fixed shift"),
    ("sleep=off,quantum=100", "quantum needs a fixed shift"),
    ("shift=auto,sleep=off,quantum=100", "quantum needs a fixed shift"),
    ("shift=0,quantum=100", "quantum needs sleep=off"),
    ("shift=0,sleep=on,quantum=100", "quantum needs sleep=off"),
    ("shift=0,sleep=off,quantum=0", "quantum must be a number from 1 to 1000000, not '0'"),
    ("shift=0,sleep=off,quantum=-1", "quantum must be a number from 1 to 1000000, not '-1'"),
    ("shift=0,sleep=off,quantum=1000001", "quantum must be a number from 1 to 1000000, not '1000001'"),
    ("shift=0,sleep=off,quantum=fast", "quantum must be a number from 1 to 1000000, not 'fast'"),
    ("shift=0,sleep=off,quantum=", "quantum must be a number from 1 to 1000000, not ''"),
    ("shift=0,sleep=off,speed=4", "speed, spin, memory, stall and schedule need quantum"),
    ("shift=0,sleep=off,spin=10", "speed, spin, memory, stall and schedule need quantum"),
    ("shift=0,sleep=off,stall=10", "speed, spin, memory, stall and schedule need quantum"),
    ("shift=0,sleep=off,quantum=100,stall=0", "stall must be a number from 1 to 1000000000, not '0'"),
    ("shift=0,sleep=off,quantum=100,stall-every=10", "stall-every needs stall"),
    ("shift=0,sleep=off,stall-every=10", "stall-every needs stall"),
    ("shift=0,sleep=off,schedule=1", "speed, spin, memory, stall and schedule need quantum"),
    ("shift=0,sleep=off,quantum=100,changes=1", "changes and period need schedule"),
    ("shift=0,sleep=off,changes=1", "changes and period need schedule"),
    ("sleep=off,period=1000", "changes and period need schedule"),
    ("shift=0,sleep=off,quantum=100,schedule=1,period=10000001",
     "period must be a number from 1 to 10000000, not '10000001'"),
    ("shift=0,sleep=off,quantum=100,schedule=1,changes=9", "changes must be a number from 1 to 8, not '9'"),
    ("shift=0,sleep=off,quantum=100,schedule=1,stall=10", "schedule and memory or stall are incompatible"),
    ("shift=0,sleep=off,quantum=100,schedule=1,memory=server", "schedule and memory or stall are incompatible"),
    ("shift=0,sleep=off,quantum=100,spin=101", "spin must be a number from 1 to 100, not '101'"),
    ("shift=0,sleep=off,quantum=100,spin=0", "spin must be a number from 1 to 100, not '0'"),
    ("shift=0,sleep=off,quantum=100,speed=0", "speed must be a number from 1 to 100, not '0'"),
    ("shift=1,sleep=off,quantum=100,speed=2", "speed needs shift=0"),
    ("shift=0,sleep=off,quantum=100,rr=record,rrfile=/dev/null", "quantum and rr are incompatible"),
])
def test_bad_options(icount, why):
    assert refused(icount) == why


@pytest.mark.parametrize("quantum", [1, 100, 1000, 100000])
@pytest.mark.parametrize("cpus", [1, 2, 4, 8, 16])
def test_independent_loops_scale(program, tmp_path, cpus, quantum):
    turns = 20000 if quantum == 1 else 1000000
    lines = parsed(run(program("loops", TURNS=turns), LOCKSTEP.format(quantum), cpus, tmp_path / "out"))
    took = max(lines["ended"]) - min(lines["begun"])
    assert len(lines["ended"]) == cpus
    assert 2 * turns / took >= 0.97
    assert all(end - begin == 2 * turns + 3 for begin, end in zip(lines["begun"], lines["ended"]))


def test_ordinary_code_scales(program, tmp_path):
    image = program("code", TURNS=10)
    alone = parsed(run(image, LOCKSTEP.format(1000), 1, tmp_path / "out"))["took"]
    all_of_them = parsed(run(image, LOCKSTEP.format(1000), 16, tmp_path / "out"))["took"]
    assert alone[0] / max(all_of_them) >= 0.97


def test_without_quantum_the_cpus_share_one_clock(program, tmp_path):
    lines = parsed(run(program("loops", TURNS=1000000), "shift=0,sleep=off", 4, tmp_path / "out"))
    assert max(lines["ended"]) - min(lines["begun"]) > 4 * 1900000


def test_without_icount_it_still_runs(program, tmp_path):
    assert len(parsed(run(program("loops", TURNS=1000000), None, 4, tmp_path / "out"))["ended"]) == 4


def test_speed_and_shift(program, tmp_path):
    image = program("loops", TURNS=1000000)
    for icount, instructions_per_ns in (("shift=0,sleep=off,quantum=1000,speed=4", 4),
                                        ("shift=0,sleep=off,quantum=1000,speed=3", 3),
                                        ("shift=2,sleep=off,quantum=1000", 1 / 4)):
        lines = parsed(run(image, icount, 4, tmp_path / "out"))
        for begin, end in zip(lines["begun"], lines["ended"]):
            assert abs((end - begin) * instructions_per_ns - 2000003) <= 4


@pytest.mark.parametrize("quantum", [1, 100, 1000, 100000])
@pytest.mark.parametrize("halted", [0, 1])
def test_timers_are_exact(program, tmp_path, halted, quantum):
    """From the write that starts the timer to the handler's reading of the clock: 11 instructions, always."""
    lines = parsed(run(program("timer", HALTED=halted), LOCKSTEP.format(quantum), 8, tmp_path / "out"))
    assert lines["shortest"] == lines["longest"] == [11] * 8


@pytest.mark.parametrize("quantum", [1, 7, 100, 1000, 100000])
def test_repeated_string_instructions_take_a_tick_an_element(program, tmp_path, quantum):
    """And one more, when nothing is left to do; a timer interrupts them as exactly as a loop."""
    lines = parsed(run(program("strings"), LOCKSTEP.format(quantum), 8, tmp_path / "out"))
    assert lines["wrong"] == [0] * 8
    assert [t - lines["copied"][0] for t in lines["copied"]] == [0, 1, 10, 999, 3000]
    assert [t - lines["searched"][0] for t in lines["searched"]] == [0, 0, 9, 998, 2999]
    assert lines["late"] == [11] * 8


@pytest.mark.parametrize("icount", [None, "shift=0,sleep=off", *map(LOCKSTEP.format, (1, 1000))])
def test_code_is_what_is_mapped(program, tmp_path, icount):
    """Also in pages that are global, however often it was called before."""
    lines = parsed(run(program("pages"), icount, 1, tmp_path / "out"))
    assert lines["found"] == lines["expected"]


def test_interrupts_between_idle_cpus_do_not_wait_for_a_quantum(program, tmp_path):
    image = program("ipi", BUSY=0)
    for quantum in (1, 1000, 100000):
        shortest, longest = parsed(run(image, LOCKSTEP.format(quantum), 8, tmp_path / "out"))["took"]
        assert 40 <= shortest <= longest <= 55


def test_interrupts_between_cpus_take_a_quantum_at_most(program, tmp_path):
    image = program("ipi", BUSY=1)
    for quantum in (1, 100, 1000, 100000):
        longest = parsed(run(image, LOCKSTEP.format(quantum), 8, tmp_path / "out"))["took"][1]
        assert longest <= 2 * quantum + 40


@pytest.mark.parametrize("quantum", [1, 100, 1000])
def test_a_woken_cpu_begins_when_it_was_woken(program, tmp_path, quantum):
    """Not when the round of the one that ran alone began, nor does that one lose time."""
    lines = parsed(run(program("wake"), LOCKSTEP.format(quantum), 8, tmp_path / "out"))
    shortest, longest = lines["delay"]
    assert 10 <= shortest <= longest <= 15
    assert lines["step"][0] <= 20


@pytest.mark.parametrize("quantum", [1, 100, 1000])
def test_clock_in_the_guest(program, tmp_path, quantum):
    """A CPU's own readings never go back; it is less than a quantum behind any other."""
    lines = parsed(run(program("clock"), LOCKSTEP.format(quantum), 8, tmp_path / "out"))
    assert lines["backwards"] == [0] * 8
    assert max(lines["behind"]) < quantum


def test_clock_in_another_thread(program, tmp_path):
    """The monitor runs in the main thread; it reads the clock through the HPET's counter.

    Rounds are so long that it reads often while one CPU is ahead of the next.
    """
    readings = []
    arguments = command(program("hpet"), LOCKSTEP.format(1000000), 4, tmp_path / "out")
    with monitored(arguments) as qemu:
        while text := qemu.human("xp /1gx 0xfed000f0"):
            readings.append(int(text.split()[1], 16))
    assert len(set(readings)) > 20
    assert readings == sorted(readings)


@pytest.mark.parametrize("quantum", [100, 1000, 100000])
def test_stalls(program, tmp_path, quantum):
    """Each CPU stands still for so long at most and about so often; the seed says when."""
    longest, every, time = 40000, 20000, 20000000
    image, cpus = program("stall"), 8
    icount = LOCKSTEP.format(quantum) + f",stall={longest},stall-every={every}"
    quiet = run(image, icount, cpus, tmp_path / "quiet", "-seed", "1")
    with busy_host():
        assert run(image, icount, cpus, tmp_path / "busy", "-seed", "1") == quiet
    assert run(image, icount, cpus, tmp_path / "other", "-seed", "2") != quiet
    lines = parsed(quiet)
    for leaps, most, lost in zip(lines["leaps"], lines["longest"], lines["lost"]):
        # A chance of 1 in 8, many times: half of the longest at least, and never more than it.
        assert longest / 2 < most < longest + 1000
        assert 0.85 < (time - lost) / leaps / every < 1.2
    assert len(set(lines["lost"])) == cpus
    none = parsed(run(image, LOCKSTEP.format(quantum), cpus, tmp_path / "none", "-seed", "1"))
    assert none["leaps"] == [0] * cpus


@pytest.mark.parametrize("quantum", [100, 1000, 100000])
def test_priorities(program, tmp_path, quantum):
    """One CPU goes on until it is done, or until its priority changes. The seed says which one, and when."""
    image, cpus = program("order"), 8

    def ran(name: str, schedule: str) -> str:
        return run(image, LOCKSTEP.format(quantum) + schedule, cpus, tmp_path / name)

    # All steps together take fewer instructions than this period.
    by_seed = [parsed(ran("plain", f",schedule={seed},period=10000000")) for seed in range(1, 7)]
    assert all(cpus <= lines["switches"][0] <= 2 * cpus for lines in by_seed)
    assert len({tuple(lines["order"]) for lines in by_seed}) > 3
    assert parsed(ran("none", ""))["switches"][0] > 2 * cpus
    quiet = ran("quiet", ",schedule=1,changes=8,period=200000")
    with busy_host():
        assert ran("busy", ",schedule=1,changes=8,period=200000") == quiet
    assert ran("other", ",schedule=2,changes=8,period=200000") != quiet
    assert parsed(quiet)["switches"] > parsed(ran("unchanged", ",schedule=1,period=200000"))["switches"]


def test_a_period_is_of_instructions(program, tmp_path):
    """However long one lasts: a shorter period would be seen in more switches."""
    icount = "shift={},sleep=off,quantum=1000,schedule=1,period=20000"
    switches = [parsed(run(program("order"), icount.format(shift), 8, tmp_path / "out"))["switches"][0]
                for shift in (0, 2, 4)]
    assert max(switches) < 1.25 * min(switches)


@pytest.mark.parametrize("icount", ["schedule=1", "schedule=7,changes=3", "schedule=7,changes=8,period=1000"])
def test_all_goes_on_with_priorities(program, tmp_path, icount):
    """Timers, halts, locks and interrupts work whichever vCPU is held, and every run is the same."""
    image, icount = program("mix"), LOCKSTEP.format(1000) + f",{icount}"
    quiet = run(image, icount, 8, tmp_path / "quiet")
    with busy_host():
        assert run(image, icount, 8, tmp_path / "busy") == quiet
    assert quiet != run(image, LOCKSTEP.format(1000), 8, tmp_path / "none")


@pytest.mark.parametrize("hold, rest", CONTENTION)
def test_one_lock(program, tmp_path, hold, rest):
    """One instruction at a time is the truth; the quantum must not matter much."""
    image = program("lock", HOLD=hold, REST=rest, TIME=500000)
    truth = throughput(image, LOCKSTEP.format(1), tmp_path / "out")
    for quantum in (100, 500, 1000):
        assert abs(throughput(image, LOCKSTEP.format(quantum), tmp_path / "out") / truth - 1) < 0.05, quantum


def test_one_lock_needs_short_rounds(program, tmp_path):
    """Without spin= a contended lock goes round faster than one owner after the other could take it."""
    hold = 50
    image = program("lock", HOLD=hold, REST=50, TIME=500000)
    possible = 500000 / hold
    assert throughput(image, LOCKSTEP.format(1000), tmp_path / "out") <= possible
    assert throughput(image, LOCKSTEP.format(1000) + ",spin=1000", tmp_path / "out") > possible


def quiet_and_busy(image: Path, cpus: int, console: Path) -> tuple[str, str]:
    """What a program says on a host that does nothing else, and on one that does."""
    quiet = run(image, LOCKSTEP.format(1000), cpus, console)
    with busy_host():
        return quiet, run(image, LOCKSTEP.format(1000), cpus, console)


def test_reset(program, tmp_path):
    """A reset takes effect at the same instant in every run, and stops the clock until it is done."""
    quiet, busy = quiet_and_busy(program("reset"), 8, tmp_path / "out")
    assert quiet == busy
    first, second = parsed(quiet)["reset"]
    assert first < second


def test_the_end_stops_time(program, tmp_path):
    """A guest that asks for its end gets no further than that round, however late the host gets to it."""
    quiet, busy = quiet_and_busy(program("end"), 8, tmp_path / "out")
    assert quiet == busy
    assert quiet.startswith("before 0\n") and len(quiet) < 100


@pytest.mark.parametrize("schedule", ["", ",schedule=7,changes=3,period=100000"])
def test_same_bytes_in_every_run(program, tmp_path, schedule):
    """Whatever else the host does, and however often the machine is stopped and asked questions.

    The guest pauses its machine ten times, and goes on when the host says so: there are at least as many stops.
    """
    image, icount = program("mix"), LOCKSTEP.format(1000) + schedule
    quiet = run(image, icount, 8, tmp_path / "quiet")
    with busy_host():
        loaded = run(image, icount, 8, tmp_path / "loaded")
    with monitored(command(image, icount, 8, tmp_path / "asked", "-S", "-device", "isa-debug-pause")) as qemu:
        stops = 0
        while qemu.execute("cont") is not None and qemu.execute("stop") is not None:
            qemu.human("info registers -a")
            stops += 1
        qemu.wait()
    assert stops >= 10
    assert quiet == loaded == (tmp_path / "asked").read_text()
    assert quiet != run(image, LOCKSTEP.format(999) + schedule, 8, tmp_path / "other")


@pytest.mark.parametrize("quantum", [100, 10000])
def test_a_drive_is_not_ahead_because_another_is(program, tmp_path, quantum):
    """A program takes 100 us, whatever another CPU has done to another drive by the end of the round."""
    drives = [word for i in range(2) for word in (
        "-device", f"nvme,id=nvme{i},serial={i},addr={4 + i},inline-doorbells=on", "-device",
        f"nvme-ns,bus=nvme{i},zoned=on,zoned.zone_size=1M,logical_block_size=4096,physical_block_size=4096,"
        f"flash.media={tmp_path}/{i},flash.size=16M,flash.program_ns=100000,flash.buffer=0")]
    lines = parsed(run(program("drives"), LOCKSTEP.format(quantum), 2, tmp_path / "out", *drives))
    assert lines["flushes"][0] > 1000
    assert 100000 < lines["shortest"][0] <= lines["longest"][0] < 100050


def test_a_slow_serial_port_takes_no_time(program, tmp_path):
    """The reader takes nothing until the pipe is full, so the emulator has to wait for it, many times."""
    size, times = 4096, 50
    image = program("serial", BYTES=size * times)
    fast = run(image, LOCKSTEP.format(1000), 2, tmp_path / "out", "-serial", f"file:{tmp_path / 'sent'}")
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, size)
    arguments = command(image, LOCKSTEP.format(1000), 2, tmp_path / "out", "-serial", f"file:/dev/fd/{writer}")
    received = b""
    with subprocess.Popen(arguments, pass_fds=[writer]) as process:
        os.close(writer)
        for _ in range(times):
            while int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), sys.byteorder) < size:
                assert process.poll() is None or len(received) == size * (times - 1)
            received += os.read(reader, size)
        assert process.wait(timeout=60) == 1
    os.close(reader)
    assert received == (tmp_path / "sent").read_bytes()
    assert len(received) == size * times
    assert (tmp_path / "out").read_text() == fast

# SPDX-License-Identifier: GPL-2.0
"""Scripts of guest/ that measure what durability costs: FUA, flushes beside discards, a starved writer, checkpoints."""

from statistics import median

from mtlab.exp import fio


def test_a_fua_write_waits_for_nobody_else(run_script):
    """Beside users at half of their peak, FUA takes at most 1.3 times as long as alone and costs them at most 5%."""
    slower, kept = [], []
    for seed in (1, 2, 3):
        result = run_script("a_fua_write_waits_for_nobody_else", str(seed), seed=seed)
        words = result.output.split("peak ")[1].split()
        slower.append(int(words[words.index("beside") + 2]) / int(words[words.index("alone") + 2]))
        kept.append(int(words[-1]) / int(words[-3]))
        print(words, slower[-1], kept[-1])
    assert median(slower) <= 1.3, slower
    assert median(kept) >= 0.95, kept


def test_a_discard_of_the_whole_drive_keeps_no_flush_waiting(run_script):
    """The longest fsync beside a discard waits for a few writes of records, not for the discard."""
    result = run_script("a_discard_of_the_whole_drive_keeps_no_flush_waiting")
    words = result.output.split()
    alone, beside = (int(words[words.index(name) + 1]) for name in ("alone", "beside"))
    # One that is under way, one beside its own write, and one more if the discard killed what was buffered.
    assert beside <= 5 * alone, result.output


def test_discards_that_waited_leave_the_cpu_to_others(run_script):
    """Many discards of blocks that are not mapped wait behind others for room: the worker reschedules."""
    result = run_script("discards_that_waited_leave_the_cpu_to_others")
    longest = int(result.output.split("longest ")[1].split()[0])
    assert longest <= 15_000, longest


def test_a_cpu_that_is_taken_stops_no_write(run_script):
    """A real-time task takes CPU 1 for itself while nothing is flushed: what waits in lane 1 goes on all the same."""
    result = run_script("a_cpu_that_is_taken_stops_no_write")
    longest = fio.sample(result.files["job.json"], "write")["max_us"]
    assert longest <= 100_000, longest


def test_lanes_keep_off_isolated_cpus(run_script):
    """A CPU that is isolated, or without ticks, gets no lane and no writer; users there have one all the same."""
    result = run_script("lanes_keep_off_isolated_cpus")
    assert "lanes 2" in result.output
    assert sorted(line.split()[1] for line in result.output.splitlines() if "Cpus_allowed" in line) == ["0", "2"]


def test_what_checkpoints_cost_a_database(run_script):
    """With an fsync after each 4 KiB of a GiB, over ten lengths of the log, checkpoints write its map blocks alone."""
    result = run_script("what_checkpoints_cost_a_database")
    count = {name: int(value) for name, value in (line.split() for line in result.output.splitlines()
                                                  if len(line.split()) == 2)}
    assert count["map"] >= 8192 and count["written"] == 20 * count["map"], count
    # A unit takes one number. The log is two maps long, plus what is written until the next zone is opened, when the
    # target looks at its length.
    assert 8 <= count["checkpoints"] <= 10, count
    share = count["flash_meta"] / count["written"]
    print(f"flash_meta is {share:.1%} of what users wrote")
    # The map blocks of that GiB, 8 bytes for each map block there is, and 32 for each zone; with a header for each 31
    # blocks.
    checkpoints = count["checkpoints"] * (256 + count["map"] / 512 + count["zones"] / 128) * 32 / 31
    # A zone ends with a footer of 16 bytes for each block of its capacity, a header for each 7 blocks, and a tail. The
    # zones that two lanes write to have none yet.
    footer = count["capacity"] / 256 * 8 / 7 + 1
    footers = ((count["flash_data"] + count["flash_headers"]) / (count["capacity"] - footer) - 2) * footer
    assert 0.98 <= count["flash_meta"] / (checkpoints + footers) <= 1.1, (count, checkpoints, footers)
    assert share <= 0.05, count

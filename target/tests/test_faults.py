# SPDX-License-Identifier: GPL-2.0
"""Scripts of guest/ whose output is judged here: names, tables that follow each other, erases, hibernation."""

import os
import re
from itertools import pairwise


def test_threads_and_queues_are_named_for_their_device(run_script):
    result = run_script("threads_and_queues_are_named_for_their_device")
    names = result.output.split()
    for device in ("dm-0", "dm-1"):
        for name in (f"mtftl/{device}/0", f"mtftl/{device}/1", f"mtftl_gc/{device}/2", f"mtftl_gc/{device}",
                     f"mtftl_flush/{device}"):
            assert name in names
    assert all("dm-0" in name or "dm-1" in name for name in names if "kworker" not in name), names


def mounts_at_once(trace: bytes) -> tuple[int, int]:
    """How many mounts there were, and the most at a time."""
    now = most = mounts = 0
    made = set()
    for process, function in re.findall(r"-(\d+) .*: (mtftl_\w+) <-", trace.decode()):
        if function == "mtftl_device_prepare":
            made.add(process)
        elif function == "mtftl_recover":
            mounts += 1
            now += 1
        # A refused table is destroyed by the process that made it.
        elif process not in made:
            now -= 1
        most = max(most, now)
    return mounts, most


def test_one_table_writes_to_a_drive(run_script):
    """A suspended table is removed while another one is created: that one is refused, or comes when all is written."""
    rounds = int(os.environ.get("MTFTL_ROUNDS", "6"))
    result = run_script("one_table_writes_to_a_drive", str(rounds), timeout=300 + 2 * rounds)
    print(result.output)
    assert mounts_at_once(result.files["trace"]) == (2 * rounds, 1)


def test_a_table_that_follows_waits_for_the_one_before(run_script):
    """An old table, replaced by one of `error`, still writes when a new table of the same name is resumed."""
    result = run_script("a_table_that_follows_waits_for_the_one_before")
    assert mounts_at_once(result.files["trace"])[1] == 1


def test_the_table_can_be_measured(run_script):
    """What IMA gets: name, version, device and options, as other targets write it."""
    result = run_script("the_table_can_be_measured")
    table, measured = result.output.splitlines()
    words = table.split(" mtftl ")[1].split()
    options = dict(zip(words[2::2], words[3::2], strict=True))
    said = measured.split(" mtftl ")[1]
    assert said.endswith(";")
    fields = dict(field.split("=") for field in said[:-1].split(","))
    assert re.fullmatch(r"\d+\.\d+\.\d+", fields.pop("target_version"))
    assert fields == {"target_name": "mtftl", "device_name": words[0], **options}


def test_each_zone_is_free_as_soon_as_it_is_erased(run_script):
    """Zones lie on all dies, so they are erased one after the other: none waits for those behind it."""
    result = run_script("each_zone_is_free_as_soon_as_it_is_erased")
    erased = [float(line) for line in result.output.split()]
    assert len(erased) >= 50
    # An erase takes 3.5 ms, and dies do not begin with it at the same moment.
    apart = [later - earlier for earlier, later in pairwise(erased)]
    assert sum(time < 0.001 for time in apart) <= len(apart) / 20


def test_hibernation_takes_everything_along(run_script, tmp_path):
    """Under load, with GC at work: nothing is written after the image is taken, nor before what wakes up goes on."""
    with (tmp_path / "swap").open("wb") as swap:
        swap.truncate(2 << 30)
    run_script("hibernation_takes_everything_along", qemu=[
        "-drive", f"file={tmp_path / 'swap'},if=none,id=swap,format=raw", "-device", "nvme,serial=swap,drive=swap"])

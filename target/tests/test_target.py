# SPDX-License-Identifier: GPL-2.0
"""Scripts of guest/ whose output is judged here: where blocks and lanes lie, what users get, what a mount finds."""

import json
import re
from pathlib import Path

import pytest
from media import BLOCK, CKPT, CLEAN, Media
from mtlab.run import collect

GUEST = Path(__file__).resolve().parent / "guest"


def test_writers_in_order_part_ways(run_script):
    """Three jobs write in order, in turn. What each writes lies together, except at the beginning."""
    result = run_script("writers_in_order_part_ways")
    units = [(zone["zone"], unit) for zone in json.loads(result.files["dump.json"])["zones"]
             for unit in zone.get("list", []) if unit["type"] == "data"]
    torn = 0
    for writer in range(3):
        ours = sorted((unit["blocks"][0], zone, unit["block"], len(unit["blocks"])) for zone, unit in units
                      if unit["blocks"] and unit["blocks"][0] // 8000 == writer)
        assert sum(blocks for *_, blocks in ours) == 64 * 8
        torn += sum((zone, at) != (before, begun + 1 + blocks)
                    for (_, before, begun, blocks), (_, zone, at, _) in zip(ours, ours[1:], strict=False))
    # each zone that is full is such a place, and so are the first rounds
    assert torn <= 12, torn


@pytest.mark.parametrize("option", ["on", "off"])
def test_blocks_share_zones_as_their_writers_say(run_script, option):
    """Writes with hints take turns: a full zone has blocks of one hint or, if hints are off, of all alike.

    Blocks that would hold up others for long share a unit with those of other hints: a few.
    """
    result = run_script("blocks_share_zones_as_their_writers_say", option)
    zones = [[block // 32 % 3 for unit in zone.get("list", []) if unit["type"] == "data" for block in unit["blocks"]]
             for zone in json.loads(result.files["dump.json"])["zones"]]
    shares = [[hints.count(hint) / len(hints) for hint in range(3)] for hints in zones if len(hints) > 900]
    assert len(shares) > 20, shares
    if option == "on":
        assert all(max(of) > 0.9 for of in shares), shares
        assert {of.index(max(of)) for of in shares} == {0, 1, 2}
    else:
        assert all(0.25 < share < 0.45 for of in shares for share in of), shares


def test_a_read_in_parts_does_not_wait_for_the_last_one(run_script):
    """A read of 512 parts, for which the caller plugs: each is at the drive before the next ones are made."""
    result = run_script("a_read_in_parts_does_not_wait_for_the_last_one")
    waiting, most, made = 0, 0, 0
    for event in result.files["events"].decode().splitlines():
        kind, sectors = event.split()
        waiting += int(sectors) if kind == "getrq" else -int(sectors)
        made += int(sectors) if kind == "getrq" else 0
        most = max(most, waiting)
    assert made >= 2048
    assert most <= 24 * 8, most


def test_lanes_are_on_the_node_of_their_cpu(run_script):
    """128 MiB of buffers for two lanes on two nodes: half of it on each, wherever the table is loaded."""
    result = run_script("lanes_are_on_the_node_of_their_cpu")
    rows = [[int(word) for word in line.split()[1:]] for line in result.output.splitlines() if line.startswith("taken")]
    assert len(rows) == 2
    for *free, entries in rows:
        assert entries == 16384
        for before, after in zip(free[:2], free[2:], strict=True):
            assert 60 << 10 < before - after < 90 << 10, rows


def test_users_stay_on_their_node(run_script):
    """A lone user's write goes to an idle neighbour's lane, but not to one on the other node, even if that is next."""
    result = run_script("users_stay_on_their_node")
    units = [unit for zone in json.loads(result.files["dump.json"])["zones"] for unit in zone.get("list", [])
             if unit["type"] == "data" and unit["blocks"]]
    lanes = {cpu: {unit["lane"] for unit in units if unit["blocks"][0] // 1000 == cpu} for cpu in (1, 3)}
    assert lanes == {1: {0}, 3: {2}}


def test_docs_name_everything(run_script):
    """The status, options, messages and tracepoints are those in docs/use/."""
    page = "".join((Path(__file__).resolve().parents[2] / "docs/use" / name).read_text()
                   for name in ("options.md", "status.md"))
    result = run_script("docs_name_everything")
    said = dict(line.split(" ", 1) for line in result.output.splitlines())
    status, table = said["status"].split(), said["table"].split()
    shown = {
        "name": set(status[::2]),
        "option": set(table[::2]),
        "message": {words.split()[0] for words in said["message"].split(", ")},
        "Tracepoints": {Path(p).name for p in said["trace"].split()},
    }
    for part, names in shown.items():
        text = page.partition(f"| {part} |")[2] or page.partition(part)[2].partition(": ")[2].partition("`.")[0] + "`"
        rows = [row.split("|")[1] for row in text.strip().partition("\n\n")[0].splitlines() if row.startswith("|")]
        assert names == set(re.findall(r"`(\w+)", " ".join(rows) or text)), part


def test_each_cpu_has_a_lane_whatever_its_number(run_script):
    """Of eight CPUs every second one is off: each of the four writes to the lane that lies on it."""
    result = run_script("each_cpu_has_a_lane_whatever_its_number")
    for own, of in re.findall(r"CPU \d: (\d+) of (\d+) writes", result.output):
        assert int(own) > 0.6 * int(of) > 0, result.output


def test_users_who_are_slowed_get_even_shares(run_script):
    """One user on each CPU, more of them than a zone that comes back has parts: none goes short for another one."""
    result = run_script("users_who_are_slowed_get_even_shares")
    writes = [int(x) for x in re.findall(r"user: (\d+) writes", result.output)]
    assert len(writes) == 8
    assert min(writes) > 0.8 * sum(writes) / 8, writes


MEDIA = Media(32, 1024, 768)
OLD = MEDIA.unit(6, 1, {7: b"old", 10: b"a", 11: b"b", 12: b"c"})
NEW = MEDIA.unit(6, 4, {7: b"new"}, durable=1)
# Zones' content, and what fills block 7 then.
READ = {
    "newest record torn": ({0: MEDIA.superblock(flags=CLEAN) + bytes(BLOCK), 6: OLD + NEW}, "new"),
    "a checkpoint that no record names": (
        {0: MEDIA.superblock(), 6: OLD + MEDIA.unit(6, 4, {7: b"new"})[:BLOCK] + bytes(BLOCK),
         7: MEDIA.unit(7, 5, {0: b"map"}, kind=CKPT, durable=4)}, "old"),
    "two places of a durable number, neither whole": (
        {0: MEDIA.superblock(), 6: OLD + MEDIA.unit(6, 9, {8: b"x"}, durable=8),
         **{zone: MEDIA.unit(zone, 4, {7: b"new"})[:BLOCK] + bytes(BLOCK) for zone in (7, 8)}}, ""),
    "two places of a durable number, one whole": (
        {0: MEDIA.superblock(), 6: OLD + MEDIA.unit(6, 9, {8: b"x"}, durable=8),
         7: MEDIA.unit(7, 4, {7: b"new"}), 8: MEDIA.unit(8, 4, {7: b"new"})[:BLOCK] + bytes(BLOCK)}, "new"),
    "copy of a header": ({0: MEDIA.superblock(), 6: OLD + bytes(BLOCK) + OLD[:BLOCK] + NEW + bytes(3 * BLOCK)}, "new"),
}


@pytest.fixture(scope="module")
def mounted(request, lab_run, helpers, tmp_path_factory):
    """What block 7 holds on each of the media, and the status of mtftl check; from one boot."""
    folder = tmp_path_factory.mktemp("media")
    files = [folder / f"{number}-{zone}" for number, (zones, _) in enumerate(READ.values()) for zone in zones]
    for file, data in zip(files, (data for zones, _ in READ.values() for data in zones.values()), strict=True):
        file.write_bytes(data)
    result = collect.run(GUEST, request, lab_run, helpers, "a_mount_finds_what_the_media_hold", push=files)
    return dict(zip(READ, result.output.splitlines(), strict=True))


@pytest.mark.parametrize("name", READ)
def test_a_mount_finds_what_the_media_hold(mounted, name):
    """A clean record with one behind it that is not whole; a copy of a header in a torn unit's payload."""
    assert mounted[name] == f"{READ[name][1]} 0"


def test_gc_leaves_users_zone_to_what_is_buffered(run_script):
    """With one open zone for all, and few empty ones, GC waits until the buffers have taken theirs.

    But for a unit now and then: what is traced is when it goes out, not when it looked.
    """
    result = run_script("gc_leaves_users_zone_to_what_is_buffered")
    found = re.search(r"(\d+) free, reserve (\d+), open_limit 1\b", result.output)
    assert found, result.output
    empty, kept, used = int(found[1]), int(found[2]) - 2, 0     # of the reserve two zones are GC's
    units = early = 0
    for line in result.files["trace"].decode().splitlines():
        if state := re.search(r"mtftl_zone_state: .* (\w+) -> (\w+) wp", line):
            empty += (state[2] == "empty") - (state[1] == "empty")
        elif buffer := re.search(r"mtftl_(?:insert|free): .* used (\d+)", line):
            used = int(buffer[1])
        elif re.search(r"mtftl_unit_submitted: .* gc seq", line):
            units += 1
            early += used > 0 and empty < kept
    assert units >= 2000
    assert early * 500 <= units, (units, early)


@pytest.mark.parametrize("kernel, names", [("6.12", ("ext4", "xfs")), ("6.1", ("btrfs", "f2fs"))])
def test_file_systems_are_clean_after_work(run_script, kernel, names):
    """Files written, buffered and direct, moved, linked and removed, with discards; all there after a stop."""
    result = run_script("file_systems_are_clean_after_work", *names, kernel=kernel)
    assert result.output.count(" clean") == len(names)

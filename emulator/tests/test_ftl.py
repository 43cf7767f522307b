# SPDX-License-Identifier: GPL-2.0-or-later
"""The FTL inside a drive: against an array on the host, with planted bugs, its write amplification."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mtlab.run.firmware import greedy, simulate
from shared import HERE, MODEL, NVME, compile_c

SANITIZED = ["-O2", "-fsanitize=address,undefined"]
MAPPINGS = ("page", "dftl", "bast", "fast", "last")
SEEDS = range(1, 13)
FTL = NVME / "flash/ftl"
SOURCES = [*sorted(MODEL.glob("*.c")), *sorted(FTL.glob("*.c"))]


def build(target: Path, program: str, *flags: str, sources: list[Path] = SOURCES) -> Path:
    return compile_c(target, *(x for x in flags if not x.startswith("-l")), f"-I{NVME}", HERE / program, *sources,
                     *(x for x in flags if x.startswith("-l")))


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plain = os.environ.get("MTFTL_FTL_SANITIZE") == "no"
    return build(tmp_path_factory.mktemp("ftl") / "sanitized", "test_ftl.c", *(["-O2"] if plain else SANITIZED))


def run(program: Path, *args: str | int) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=900)


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_against_an_array(sanitized: Path, mapping: str) -> None:
    """Random commands and power cuts on a dozen small drives; MTFTL_FTL_OPERATIONS asks for more."""
    operations = int(os.environ.get("MTFTL_FTL_OPERATIONS", 60000))
    for seed in SEEDS:
        done = run(sanitized, mapping, operations // len(SEEDS), seed)
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("mapping,modes", [(mapping, ("plp",)) for mapping in MAPPINGS] +
                         [("page", ("aged",)), ("dftl", ("aged",)), ("page", ("aged", "handles", "whole", "plp")),
                          ("page", ("whole",)), ("page", ("whole", "plp")), ("page", ("handles",)),
                          ("page", ("handles", "whole", "plp"))])
def test_what_a_drive_promises(sanitized: Path, mapping: str, modes: tuple[str, ...]) -> None:
    """With capacitors nothing acknowledged is lost; atomic writes are not torn, also where blocks are collected.

    What handles bring is mixed by collection only, and not at all if it is to stay apart. Blocks that wear and data
    that ages, which is moved before it gets old, are no reason to break a promise.
    """
    operations = int(os.environ.get("MTFTL_FTL_OPERATIONS", 60000))
    for seed in SEEDS:
        done = run(sanitized, mapping, operations // len(SEEDS), seed, *modes)
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"


def test_other_writes_are_torn(sanitized: Path) -> None:
    found = [run(sanitized, "page", 5000, seed, "torn").stdout for seed in SEEDS]
    assert sum("is torn" in said for said in found) > len(SEEDS) / 2


def profile_words(name: str) -> list[str]:
    """The black box of a profile as words of the simulator, which has no power to lose."""
    text = (HERE.parent / f"profiles/{name}.cfg").read_text()
    found = dict(re.findall(r'^ *flash\.(\w+) = "(.*)"$', text, re.MULTILINE))
    dies = int(found["channels"]) * int(found["dies"])
    number = {key: int(re.sub("[KM]$", "", value)) * {"K": 1 << 10, "M": 1 << 20}.get(value[-1], 1)
              for key, value in found.items() if value[0].isdigit()}
    block = dies * number["planes"] * number["page"] * number["block_pages"]
    on = {key: 1 for key, value in found.items() if value == "on" and key != "plp"}
    words = number | on | {"blocks": number.pop("size") // block, "spare_permille": 10 * number.pop("spare"),
                           "zone_dies": dies}
    return [f"{key}={value}" for key, value in words.items() if key not in ("size", "spare")]


@pytest.mark.parametrize("name,writes,reads", [("datacentre", 32 * 168e6, 1e6), ("consumer", 3.15e9, 32 / 50e-6)])
def test_rates_of_profiles(name: str, writes: float, reads: float) -> None:
    """Writes in order by what the dies program, random reads by the controller or, without planes apart, the dies."""
    words = profile_words(name)
    put = simulate(*words, "fill=0", "random=0", "large=131072", "depth=64", "warm=2000", "requests=6000")
    assert put["iops"] * 131072 == pytest.approx(writes, rel=0.01)
    got = simulate(*words, "area=10", "reads=100", "depth=4096", "warm=5000", "requests=400000")
    assert got["iops"] == pytest.approx(reads, rel=0.03)


def test_crafted_images(tmp_path: Path) -> None:
    """What no drive writes is refused when it starts."""
    done = run(build(tmp_path / "image", "test_ftl_image.c", *SANITIZED, "-lcmocka"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_padding(tmp_path: Path) -> None:
    """A program unit is programmed once: what a flush leaves of it is gone, and collection pads none."""
    done = run(build(tmp_path / "units", "test_ftl_units.c", *SANITIZED, "-lcmocka"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_mapping_of_the_docs(tmp_path: Path) -> None:
    """One file and one line, as docs/emulator/own-ftl.md says."""
    copy = tmp_path / "flash/ftl"
    shutil.copytree(FTL, copy)
    (tmp_path / "flash/model").symlink_to(MODEL)        # the copy includes it by "../model/"
    text = (HERE.parent.parent / "docs/emulator/own-ftl.md").read_text()
    (copy / "ring.c").write_text(text.split("```c\n")[1].split("```")[0])
    mappings = (copy / "mappings.h").read_text()
    line = "    each(ftl_fast)              \\\n"
    assert mappings.count(line) == 1
    (copy / "mappings.h").write_text(mappings.replace(line, line + line.replace("fast", "ring")))
    program = build(tmp_path / "ring", "test_ftl.c", *SANITIZED, sources=[
        *sorted(MODEL.glob("*.c")), *sorted(copy.glob("*.c"))])
    for seed in SEEDS:
        done = run(program, "ring", 3000, seed)
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"


# A bug, what has it, the line and what becomes of it, the mapping that shows it.
PLANTED = [
    ("erased before the moved blocks are on flash", "core.c",
     "            held |= wait_for(ftl, victim, n, cmd, push);\n", "            ;\n", "page"),
    ("a stale version wins at power on", "core.c",
     "oob->version > versions[lba]", "!versions[lba]", "page"),
    ("a lost trim", "ftl.c", "            ftl->trims[lba] = ++ftl->version;\n", "", "page"),
    ("a trim that leaves the map alone", "ftl.c", "            ftl_unmap(ftl, lba);\n", "", "page"),
    ("the map is not rebuilt", "core.c",
     "            map_to(ftl, lba, (uint64_t)block * ftl->cap + i);\n", "", "page"),
    ("a stale log page wins at power on", "core.c", "oob->version > versions[lba]", "!versions[lba]", "fast"),
    ("a wrong merge: a log block out of order is switched", "hybrid.c",
     "log != FTL_NONE && in_order(ftl, piece, log)", "log != FTL_NONE", "bast"),
    ("a wrong merge: another piece's log goes with it", "hybrid.c",
     "h->piece_of[h->in_order[i]] == piece", "true", "fast"),
    ("merged before the moved blocks are on flash", "core.c",
     "job->in_place && n < ftl_used(ftl, job->tag)", "false", "last"),
    ("half of the map is not rebuilt", "core.c", "        if (lba < ftl->space &&",
     "        if (lba <= ftl->space / 2 &&", "dftl"),
    ("room that a cut left is forgotten", "page.c",
     "            page->groups[i % ftl->nr_groups].left += ftl->cap -\n"
     "                                                     ftl_used(ftl, i);\n", "            ;\n", "page"),
    ("a block that padding has filled is written on", "page.c",
     "    if (*open != FTL_NONE && ftl_used(ftl, *open) == ftl->cap) {\n", "    if (false) {\n", "page"),
    ("a log that is written is emptied first, and written on", "hybrid.c",
     "        if (h->ways[i] == block) {\n", "        if (0) {\n", "fast"),
    ("the free block before a taken one is lost", "core.c",
     "        if (most ? n > than : n < than) {\n            best = next;\n            before = block;\n",
     "        if (most ? n > than : n < than) {\n            best = next;\n            before = next;\n", "page"),
    ("writes that take GC's last blocks", "page.c",
     "        return FTL_NONE;        /* GC needs what is left */\n", "", "page"),
]


# The same where a promise is made.
BROKEN = [
    ("an atomic write in a full buffer", "ftl/ftl.c", "    if (cmd->whole) {\n", "    if (false) {\n", ("whole",)),
    ("padding that is not kept", "model/unit.c",
     "        unit_store(dev, u, u->nlb, n);\n", "        (void)n;\n", ("plp",)),
    ("a flush waits for programs", "model/unit.c", "    if (dev->plp) {\n        u->kept = true;\n",
     "    if (false) {\n        u->kept = true;\n", ("plp",)),
    ("collection mixes what is to stay apart", "ftl/page.c",
     "    return handle != FTL_NONE && ftl_is_apart(ftl, handle) ?\n", "    return false ?\n", ("handles",)),
    ("a handle goes on in another's block at power on", "ftl/page.c",
     "handle == FTL_NONE ? STREAM_GC : stream_of_handle(handle);", "stream_of_handle(0);", ("handles",)),
    ("a moved block forgets its handle", "ftl/core.c", "            handle = oob_handle(&oob);\n", "", ("handles",)),
    ("moves go where there is room", "ftl/page.c",
     "    if (ftl->config.handles) {\n        return ftl_units(ftl, b->valid) <=\n",
     "    if (ftl->config.handles) {\n        return 0 * ftl_units(ftl, b->valid) <=\n", ("handles",)),
]


@pytest.mark.parametrize("name,file,line,planted,modes", BROKEN, ids=[x[0] for x in BROKEN])
def test_broken_promises(tmp_path: Path, name: str, file: str, line: str, planted: str, modes: tuple[str, ...]) -> None:
    found = NVME / "flash" / file
    text = found.read_text()
    assert text.count(line) == 1
    copy = tmp_path / found.name
    copy.write_text(text.replace(line, planted).replace('#include "', f'#include "{found.parent}/'))
    program = build(tmp_path / "broken", "test_ftl.c", "-Wno-error", sources=[copy if x == found else x
                                                                             for x in SOURCES])
    assert any(run(program, "page", 40000, seed, *modes).returncode for seed in SEEDS)


@pytest.mark.parametrize("name,file,line,planted,mapping", PLANTED, ids=[x[0] for x in PLANTED])
def test_planted_bugs(tmp_path: Path, name: str, file: str, line: str, planted: str, mapping: str) -> None:
    """Each is found by one of the drives: the test above would see it."""
    text = (FTL / file).read_text()
    assert text.count(line) == 1
    (tmp_path / file).write_text(text.replace(line, planted).replace('#include "', f'#include "{FTL}/'))
    program = build(tmp_path / "planted", "test_ftl.c", "-Wno-error",
                    sources=[tmp_path / file if x == FTL / file else x for x in SOURCES])
    assert any(run(program, mapping, 40000, seed).returncode for seed in SEEDS)


@pytest.mark.parametrize("spare", [7, 15, 25, 50])
def test_write_amplification(spare: int) -> None:
    told = simulate("sector=512", "page=512", "small=512", "large=512", "run=512", "block_pages=256", "blocks=512",
                    f"spare_permille={spare * 10}", "gc_begin=100", "gc_urgent=100", "hot_cold=1", "buffer=32768",
                    "age=300", "requests=80000")
    # of the two blocks that are being written half is used
    ratio = (told["in_use"] - 1) * told["block_sectors"] / told["logical"]
    assert (told["host"] + told["moved"]) / told["host"] == pytest.approx(greedy(ratio, 256), rel=0.02)


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_each_block_is_counted_once(mapping: str) -> None:
    """What is programmed was written for the host, moved, a filler, or a page of the map; 72 blocks are in flight."""
    told = simulate("sector=512", "page=512", "small=512", "large=512", "run=512", "block_pages=64", "blocks=128",
                    "spare_permille=300", "buffer=32768", "age=50", "requests=20000", f"mapping={mapping}",
                    "log_blocks=16", "map_pages=4")
    written = sum(told[key] for key in ("host", "moved", "filler", "map_writes"))
    assert written == pytest.approx(told["programmed"], abs=72)


def test_logs_in_turn() -> None:
    """Random writes to empty logs: one die programs, or all of those whose logs are written in turn."""
    rates = [simulate("sector=512", "page=512", "small=512", "large=512", "run=512", "program_ns=900000", "channels=4",
                      "zone_dies=1", "block_pages=4096", "blocks=8", "spare_permille=1000", "mapping=fast",
                      "log_blocks=8", f"log_ways={ways}", "depth=16", "buffer=8192", "warm=40", "requests=800")["iops"]
             for ways in (1, 2, 4)]
    assert rates == pytest.approx([ways / 900e-6 for ways in (1, 2, 4)], rel=0.001)


def test_wear() -> None:
    """Only a tenth is written: a block is erased as often as another, to the spread; what that moves is bounded."""
    found = {spread: simulate("sector=512", "page=512", "small=512", "large=512", "run=512", "block_pages=64",
                              "blocks=128", "spare_permille=150", "gc_begin=100", "gc_urgent=100", "hot_cold=1",
                              "buffer=32768", "hot=100", "hot_area=10", "age=3000", "requests=40000",
                              f"wear_spread={spread}") for spread in (0, 4, 16)}
    assert found[0]["erases_least"] == 0 and found[0]["erases_most"] > 150 and not found[0]["levelled"]
    for spread in (4, 16):
        told = found[spread]
        assert 0 < told["erases_most"] - told["erases_least"] <= spread + 1
        # a block that is moved for it takes so many erases then
        assert told["levelled"] <= told["victims"] / spread
        assert told["moved"] <= 1.25 * found[0]["moved"] + 64 * told["levelled"]


def test_collected_at_once() -> None:
    """A victim's moves are charged at once: the dies work as long for a move, but more writes wait for all of them."""
    found = [simulate("block_pages=64", "read_ns=50000", "program_ns=900000", "depth=16", "buffer=0", "channels=2",
                      "dies=2", "spare_permille=250", "gc_begin=90", "age=200", "requests=3000", f"gc_at_once={way}")
             for way in (0, 1)]
    for told in found:
        assert told["seconds"] * 4 == pytest.approx(told["moved"] * 950e-6 + told["host"] * 900e-6, rel=0.1)
    assert found[1]["writes"]["p90_us"] > 5 * found[0]["writes"]["p90_us"]


def test_turns() -> None:
    """Reads of ten channels, two dies each: one page a turn, or as many as the link carries."""
    rates = {turn: simulate("sector=4096", "page=4096", "channels=10", "dies=2", "block_pages=64", "blocks=64",
                            "read_ns=140000", "program_ns=940000", "channel_rate=49951220", "random=0", "large=524288",
                            "run=524288", "depth=2", "spare_permille=1000", "reads=100", "warm=8", "requests=400",
                            f"turn_read_ns={turn}")["mb_s"] for turn in (16000, 33000)}
    assert rates == pytest.approx({16000: 256, 33000: 4096 / 33}, rel=0.01)

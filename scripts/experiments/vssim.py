# SPDX-License-Identifier: GPL-2.0
"""The figures of VSSIM's talk: what a drive's shape and its FTL do to each other.

Drives are the black box's own FTL and flash model without a guest (emulator/simulator/firmware.c); vssim-guest has what
needs one. The talk's axis labels are partly lost, and so are its bars: what was taken for them is said at each part
below. Its drives have 2 or 4 GB a die; these have a few MiB, in erase blocks of 64 pages, so that seconds write all of
them. Times of its own configuration file: 82 us to carry a page of 4 KiB over a channel, and 16 or 33 us from one
channel to the next, which turn_read_ns and turn_write_ns are. channel_switch_ns, from one die of a channel to another,
is ours: parts that VSSIM's own is not a part of have it, as they had before.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, says, within
from mtlab.exp.sources import KNOWN, MAKER, TALK
from mtlab.run.firmware import greedy
from mtlab.run.options import MODEL, Options

RATE, SWITCH = 4096 / 82e-6, 33e-6              # of a channel
TURN_READ, TURN = 16e-6, 33e-6                  # from one channel to the next
BUS = f"channel_rate={RATE:.0f} channel_switch_ns={SWITCH * 1e9:.0f}"
# channels, ways, page, read, program, erase in microseconds, as the talk has them
DRIVES = {"A": (8, 1, 2048, 60, 800, 1500), "B": (4, 2, 2048, 60, 800, 1500), "C": (2, 4, 2048, 60, 800, 1500),
          "D": (4, 1, 4096, 50, 900, 2000)}
# One request at a time, a page on each die: all drives of the talk.
STRIPES = DRIVES | {"E": (2, 2, 4096, 50, 900, 2000)}
DOUBLED = (("A", "B"), ("B", "C"), ("D", "E"))
PAGES, CHANNELS = (2, 4, 8, 16), (1, 2, 4, 8)   # KiB
BUFFERS = {"through": 0, "buffered": 1 << 20}
# 128 MiB in erase blocks of 256 KiB, each on one die; 64 logs for writes in any order and 16 for those in order, for
# FAST too, as the talk has it.
SMALL = (f"sector=4096 page=4096 block_pages=64 zone_dies=1 read_ns=50000 program_ns=900000 erase_ns=2000000 {BUS} "
         "buffer=262144 spare_permille=250 gc_begin=95 hot_cold=1 depth=16")
BLOCKS, LOGS, IN_ORDER = 512, 80, 16
DATA = 384                                      # data blocks under so many log blocks
WAYS = (1, 2, 4)
HYBRIDS = ("fast", "last")
RANDOM = "random=100 area=25 fill=100 age=100"  # a file's 4 KiB at random, as IOzone writes them
COPY = "random=0 large=65536 run=4194304"       # files of 4 MiB on an empty drive
SHARES = (0, 25, 50, 75, 100)                   # percent of random requests
MIXED = "large=16384 run=131072 streams=8 area=50 fill=100 age=100"
FACTORS = (2, 4, 8, 16, 32, 64, 100)            # log blocks, or spare blocks, in percent of data blocks
SAVED = 8                                       # the factor at which hot and cold apart is held against a sixth
INSTALL = "random=60 hot=90 hot_area=4 large=65536 run=524288 streams=4 area=50 fill=100 age=200"
# Of that load only the small writes: there a hot block is written 216 times as often as another.
LOADS = {"install": INSTALL.replace("area=50", "area=100"), "small": "random=100 hot=90 hot_area=4 fill=100 age=200"}
# Apart: nothing, what is collected, or users' hot writes too.
KEPT = {"mixed": "hot_cold=0", "moves": "hot_cold=1", "writes": "hot_cold=1 hot_writes=1"}
SEEDS = 3
# X25-M 80 GB of the second generation, as its maker published it; a link of 3 Gb/s carries 270 MB/s. Erase blocks, and
# their time, are an eighth of those of 128 pages; 7.4% is the difference between GiB and GB.
LINK, RECORD, DIES = 270e6, 512 << 10, 20
X25M = f"sector=4096 page=4096 channels=10 dies=2 block_pages=16 blocks=128 read_ns=50000 program_ns=900000 " \
       f"erase_ns=250000 {BUS} cache=1 spare_permille=74 gc_begin=95 gc_urgent=100 hot_cold=1 buffer=1048576"
# The same drive by VSSIM's own configuration file: 140/940/2000 us, 82 us for the register, no cache register, 16 and
# 33 us from channel to channel. Its erase blocks have 256 pages; these have 16, and a sixteenth of the time.
OWN = (f"sector=4096 page=4096 channels=10 dies=2 block_pages=16 blocks=128 read_ns=140000 program_ns=940000 "
       f"erase_ns=125000 channel_rate={RATE:.0f} turn_read_ns=16000 turn_write_ns=33000 spare_permille=74 gc_begin=95 "
       "gc_urgent=100 hot_cold=1 buffer=1048576")
X25MS = {"x25m": X25M, "own": OWN}
PUBLISHED = {"sequential read (MB/s)": 250, "sequential write (MB/s)": 70, "random read (1000/s)": 35,
             "random write (1000/s)": 6.6}


def _count(quick: bool, full: int) -> int:
    return full // 4 if quick else full


def _drives(quick: bool) -> str:
    lines = []
    for drive, (channels, ways, page, read, program, erase) in DRIVES.items():
        for switch in (0, SWITCH):
            lines.append(f"{drive}-{switch * 1e6:.0f} sector={page} page={page} channels={channels} dies={ways} "
                         f"block_pages=64 blocks=64 read_ns={read}000 program_ns={program}000 erase_ns={erase}000 "
                         f"channel_rate={RATE:.0f} channel_switch_ns={switch * 1e9:.0f} fill=0 random=0 run=262144 "
                         f"depth=8 buffer=262144 warm=20 requests={_count(quick, 400)} spare_permille=1000")
    return "\n".join(lines)


def _pages(quick: bool) -> str:
    return "\n".join(
        f"{kib}-{channels}-{name} sector={min(kib, 4) * 1024} page={kib * 1024} channels={channels} block_pages=64 "
        f"blocks={1024 // kib // channels + 16} read_ns=50000 program_ns=900000 erase_ns=2000000 {BUS} fill=0 "
        f"depth=32 buffer={buffer} warm=600 requests={_count(quick, 3000)} spare_permille=2000 gc_begin=100"
        for kib in PAGES for channels in CHANNELS for name, buffer in BUFFERS.items())


def _hybrid(mapping: str, channels: int, ways: int, logs: int, in_turn: int) -> str:
    dies = channels * ways
    return f"{SMALL} mapping={mapping} channels={channels} dies={ways} blocks={BLOCKS // dies} log_blocks={logs} " \
           f"log_ways={in_turn} seq_logs={logs * IN_ORDER // LOGS}"


def _shapes(mapping: str, quick: bool) -> str:
    shapes = [(channels, 1) for channels in CHANNELS] + [(4, ways) for ways in WAYS if ways > 1]
    return "\n".join(
        f"{channels}-{ways}-{name} {_hybrid(mapping, channels, ways, LOGS, channels * ways)} {load} "
        f"warm={warm} requests={_count(quick, requests)}"
        for channels, ways in shapes
        for name, load, warm, requests in (("random", RANDOM, 500, 2000), ("copy", COPY, 100, 600)))


def _shares(mapping: str, quick: bool) -> str:
    return "\n".join(f"{share}-{in_turn} {_hybrid(mapping, 4, 1, LOGS, in_turn)} random={share} {MIXED} warm=500 "
                     f"requests={_count(quick, 2000)}" for share in SHARES for in_turn in (1, 4))


def _factors(mapping: str, quick: bool) -> str:
    """Log blocks beside 384 data blocks on four dies; six more are set aside."""
    lines = []
    for factor in FACTORS:
        logs = max(1, DATA * factor // 100)
        dies = -(-(DATA + logs + 6) // 4)
        lines.append(f"{factor} {_hybrid(mapping, 4, 1, logs, 1)} {INSTALL} blocks={dies} warm=500 "
                     f"requests={_count(quick, 3000)} spare_permille={-(-(4 * dies - DATA) * 1000 // DATA)}")
    return "\n".join(lines)


def _spare(quick: bool) -> str:
    """Page mapping, in blocks half as large: spare blocks, and what is kept apart (KEPT)."""
    return "\n".join(f"{factor}-{load}-{kept} {_hybrid('page', 4, 1, LOGS, 1)} {words} block_pages=32 warm=500 "
                     f"requests={_count(quick, 3000)} {apart} gc_urgent=100 gc_begin=100 "
                     f"spare_permille={30 + 10 * factor}"
                     for factor in FACTORS for load, words in LOADS.items() for kept, apart in KEPT.items())


def _stripes(quick: bool, turn: float) -> str:
    """The next request begins when all dies have programmed their page of the last one."""
    return "\n".join(
        f"{drive} turn_write_ns={turn * 1e9:.0f} sector={page} page={page} channels={channels} dies={ways} "
        f"block_pages=64 blocks=64 read_ns={read}000 program_ns={program}000 erase_ns={erase}000 "
        f"channel_rate={RATE:.0f} fill=0 random=0 large={dies * page} "
        f"run={dies * page} depth=1 buffer=0 warm=20 requests={_count(quick, 400)} spare_permille=1000"
        for drive, (channels, ways, page, read, program, erase) in STRIPES.items() for dies in (channels * ways,))


def _x25m(drive: str, quick: bool) -> str:
    record, small = (f"service_ns={size / LINK * 1e9:.0f}" for size in (RECORD, 4096))
    n = _count(quick, 400)
    return "\n".join([
        f"sequential-write {drive} {record} random=0 large={RECORD} run={RECORD} fill=0 depth=2 warm=8 requests=100",
        f"sequential-read {drive} {record} random=0 large={RECORD} run={RECORD} fill=100 reads=100 depth=2 warm=8 "
        f"requests={n}",
        f"random-read {drive} {small} fill=100 reads=100 depth=32 warm=500 requests={10 * n}",
        f"random-write {drive} {small} fill=100 age=10 area=10 depth=32 warm=500 requests={20 * n}",
        # all of the drive is written at random before
        f"random-all {drive} {small} fill=100 age=300 depth=32 warm=500 requests={20 * n}"])


def runs(quick: bool) -> list[Run]:
    model = Options(clock=MODEL)
    seeds = 1 if quick else SEEDS
    return [Run("drives", _drives(quick), model, seconds=2), Run("pages", _pages(quick), model, seconds=5),
            *(Run(f"shapes-{m}", _shapes(m, quick), model, seeds=seeds, seconds=5) for m in ("page", *HYBRIDS)),
            *(Run(f"shares-{m}", _shares(m, quick), model, seeds=seeds, seconds=5) for m in HYBRIDS),
            *(Run(f"factors-{m}", _factors(m, quick), model, seeds=seeds, seconds=5) for m in HYBRIDS),
            Run("spare", _spare(quick), model, seeds=seeds, seconds=16),
            Run("stripes", _stripes(quick, 0), model, seconds=1), Run("turns", _stripes(quick, TURN), model, seconds=1),
            *(Run(name, _x25m(drive, quick), model, seconds=5) for name, drive in X25MS.items())]


def _waf(told: Mapping[str, int]) -> float:
    return round((told["host"] + told["moved"] + told["filler"]) / told["host"], 4)


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for run, outputs in files.items():
        part, _, mapping = run.partition("-")
        for file, data in sorted(outputs.items()):
            point = file.rsplit(".", 1)[0]
            told = json.loads(data)
            sample = {"part": part, "mapping": mapping, "point": point, "mb_s": told["mb_s"], "iops": told["iops"],
                      "write_amplification": _waf(told) if told["host"] else 0}
            if point == "random-all":
                # flash in use over what the host sees; of two open blocks half is written
                sample["ratio"] = round((told["in_use"] - 1) * told["block_sectors"] / told["logical"], 4)
            if part in X25MS:
                sample |= {f"{way}_{key}": value for way in ("reads", "writes") for key, value in told[way].items()
                           if key.startswith("p")}
            found.append(sample)
    return found


def _of(found: list[Sample], part: str, point: str, mapping: str = "") -> Sample:
    return next(s for s in found if (s["part"], s["point"], s.get("mapping", "")) == (part, point, mapping))


def _mb_s(found: list[Sample], part: str, point: str, mapping: str = "") -> float:
    return float(_of(found, part, point, mapping)["mb_s"])


def _drive_predicted(drive: str, switch: float) -> float:
    """MB/s: dies that carry and program a page in turn, or channels that carry all the time."""
    channels, ways, page, _, program, _ = DRIVES[drive]
    carry = page / RATE + (switch if ways > 1 else 0)
    return channels * min(ways * page / (carry + program * 1e-6), page / carry) / 1e6


def _page_predicted(kib: int, channels: int, buffered: bool) -> float:
    page = kib * 1024
    of_it = page if buffered else min(page, 4096)       # what of a page holds data
    return channels * of_it / (page / RATE + 900e-6) / 1e6


def _stripe_predicted(drive: str) -> float:
    """MB/s: pages of a channel one after the other, then the last program."""
    channels, ways, page, _, program, _ = STRIPES[drive]
    return channels * ways * page / (ways * page / RATE + program * 1e-6) / 1e6


def _turns_predicted(drive: str) -> float:
    """MB/s: each page begins a turn after the one before, or when its channel is free."""
    channels, ways, page, _, program, _ = STRIPES[drive]
    carry, at = page / RATE, 0.0
    free = [0.0] * channels
    for n in range(channels * ways):
        at = max(at + (TURN if n else 0), free[n % channels])
        free[n % channels] = at + carry
    return channels * ways * page / (at + carry + program * 1e-6) / 1e6


def _published(found: list[Sample], drive: str = "x25m") -> dict[str, float]:
    """What a model of X25-M does of what was published."""
    return {name: _of(found, drive, "-".join(name.split()[:2]))["mb_s" if "MB/s" in name else "iops"] /
            (1 if "MB/s" in name else 1000) for name in PUBLISHED}


def _least_factor(found: list[Sample], part: str, points: Mapping[int, str], mapping: str, rate: float) -> float:
    """The least factor that gives so many MB/s, between the measured ones on a straight line; inf: none does."""
    before: tuple[float, float] | None = None
    for factor, point in points.items():
        now = _mb_s(found, part, point, mapping)
        if now >= rate:
            if before is None:
                return factor
            return before[0] + (factor - before[0]) * (rate - before[1]) / (now - before[1])
        before = factor, now
    return float("inf")


def _log_ratio(found: list[Sample]) -> float:
    """The log blocks of FAST that give the rate of LAST's at a factor, over that factor; at most the largest."""
    points = {f: f"{f}" for f in FACTORS}
    rate = _mb_s(found, "factors", points[SAVED], "last")
    return min(_least_factor(found, "factors", points, "fast", rate), FACTORS[-1]) / SAVED


def _spare_ratio(found: list[Sample], load: str, kept: str) -> float:
    """The same for spare blocks of the page mapping, all mixed and hot and cold apart."""
    rate = _mb_s(found, "spare", f"{SAVED}-{load}-{kept}")
    return min(_least_factor(found, "spare", {f: f"{f}-{load}-mixed" for f in FACTORS}, "", rate), FACTORS[-1]) / SAVED


def _carrying(found: list[Sample], drive: str) -> float:
    """The share of the time in which a drive's channels carry a page or turn to another die."""
    channels, _, page, *_ = DRIVES[drive]
    return _mb_s(found, "drives", f"{drive}-33") * 1e6 / page * (page / RATE + SWITCH) / channels


def _times(found: list[Sample], load: str, apart: str) -> str:
    """What eight channels give over one, with the other mappings."""
    gains = {m: _mb_s(found, "shapes", f"8-1-{load}", m) / _mb_s(found, "shapes", f"1-1-{load}", m)
             for m in ("page", *HYBRIDS) if m != apart}
    return " and ".join(f"{gain:.2f} ({m})" for m, gain in gains.items())


def _in_turn(found: list[Sample], mapping: str) -> str:
    """Write amplification with logs in turn over logs one after the other, for each share of random requests."""
    ratios = (_of(found, "shares", f"{share}-4", mapping)["write_amplification"] /
              _of(found, "shares", f"{share}-1", mapping)["write_amplification"] for share in SHARES)
    return f"For {', '.join(map(str, SHARES))}% random requests: {', '.join(f'{x:.3f}' for x in ratios)}."


def _rates(found: list[Sample], part: str, form_: str, mapping: str = "") -> str:
    return ", ".join(f"{_mb_s(found, part, form_.format(f), mapping):.2f}" for f in FACTORS)


def _heat(load: str) -> str:
    """How many times as often as the others the blocks are written that the load calls hot, from its words."""
    words = dict(word.split("=") for word in load.split())
    random, hot, area = (int(words[key]) / 100 for key in ("random", "hot", "hot_area"))
    large = (1 - random) * int(words.get("large", 65536)) / 4096
    hotter = random * hot / area + large
    return f"{hotter / (random * (1 - hot) / (1 - area) + large):.1f}"


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = [within(f"drive {drive}, {switch * 1e6:.0f} us to switch: writes (MB/s)",
                     _mb_s(found, "drives", f"{drive}-{switch * 1e6:.0f}"), _drive_predicted(drive, switch), 0.03,
                     form("the slower of all dies and all channels"))
              for drive in DRIVES for switch in (0, SWITCH)]
    result += [Check(f"writes: drive {b} over {a}, with the switch", _mb_s(found, "drives", f"{b}-33") /
                     _mb_s(found, "drives", f"{a}-33"), 0.92, 0.96,
                     says(TALK, "AS # of ways is doubled and # of channels is reduced, the performance decreases by "
                          "4~8%"),
                     f"Eight requests are in flight: transfers hide behind other dies' programs. The channels of {b} "
                     f"carry data for {_carrying(found, b):.0%} of the time.")
               for a, b in (("A", "B"), ("B", "C"))]
    result += _synchronous(found)
    result += [within(f"4 KiB random writes {name}, pages of {kib} KiB, {channels} channels (MB/s)",
                      _mb_s(found, "pages", f"{kib}-{channels}-{name}"),
                      _page_predicted(kib, channels, bool(buffer)), 0.05,
                      form("a page for each write, or pages full of them; carried, then programmed"))
               for kib in (PAGES[0], PAGES[-1]) for channels in (CHANNELS[0], CHANNELS[-1])
               for name, buffer in BUFFERS.items()]
    for mapping in HYBRIDS:
        result += [
            at_most(f"{mapping.upper()}: copying files, 8 channels over 1",
                    _mb_s(found, "shapes", "8-1-copy", mapping) / _mb_s(found, "shapes", "1-1-copy", mapping), 1.5,
                    says(TALK, "Hybrid mapping does not fit in Multi-ch/Multi-way SSD"),
                    f"The others: {_times(found, 'copy', mapping)}."),
            at_most(f"{mapping.upper()}: random writes, 8 channels over 1",
                    _mb_s(found, "shapes", "8-1-random", mapping) / _mb_s(found, "shapes", "1-1-random", mapping), 4,
                    says(TALK, "Hybrid mapping does not fit in Multi-ch/Multi-way SSD")),
            at_least(f"{mapping.upper()}: write amplification, logs in turn over one after the other, half random",
                     _of(found, "shares", "50-4", mapping)["write_amplification"] /
                     _of(found, "shares", "50-1", mapping)["write_amplification"], 1.02,
                     says(TALK, "More Parallelism, Higher Merge Overhead"), _in_turn(found, mapping)),
            at_least(f"{mapping.upper()}: rate, logs in turn over one after the other, half random",
                     _of(found, "shares", "50-4", mapping)["mb_s"] / _of(found, "shares", "50-1", mapping)["mb_s"],
                     1.02, says(TALK, "IO parallelism not only improves performance, but also increases WAF"),
                     f"Write amplification is {_of(found, 'shares', '50-1', mapping)['write_amplification']:.2f} and "
                     f"{_of(found, 'shares', '50-4', mapping)['write_amplification']:.2f}.", KNOWN),
            at_least(f"{mapping.upper()}: write amplification, all random over all in order",
                     _of(found, "shares", "100-1", mapping)["write_amplification"] /
                     _of(found, "shares", "0-1", mapping)["write_amplification"], 2,
                     ours("a run's pieces are merged once for many blocks")),
        ]
    result += [
        at_least("page mapping: copying files, 8 channels over 1",
                 _mb_s(found, "shapes", "8-1-copy", "page") / _mb_s(found, "shapes", "1-1-copy", "page"), 6,
                 ours("each program goes to another die")),
        at_least("log blocks: FAST's over LAST's at the same rate", _log_ratio(found), 6,
                 says(TALK, "Same performance with 1/6 of OP"),
                 f"With {', '.join(map(str, FACTORS))}% logs: LAST {_rates(found, 'factors', '{}', 'last')} MB/s, FAST "
                 f"{_rates(found, 'factors', '{}', 'fast')}."),
        *(at_least(f"page mapping, {load}: spare when all is mixed over that with hot writes apart, at the same rate",
                   _spare_ratio(found, load, "writes"), least, ours(why),
                   f"Hot blocks are written {_heat(words)} times as often as the others. With "
                   f"{', '.join(map(str, FACTORS))}% spare: {_rates(found, 'spare', '{}-' + load + '-writes')} MB/s "
                   f"with hot writes apart, {_rates(found, 'spare', '{}-' + load + '-mixed')} mixed.")
          for load, words, least, why in (
              ("install", LOADS["install"], 1, "runs in order are nearly as hot as what the load calls hot"),
              ("small", LOADS["small"], 2, "cold data is moved no more, and there is no sixth without logs to merge"))),
        *(within(f"X25-M: {name}", _published(found)[name], value, 0.25, says(MAKER, f"{name}: {value:g}"),
                 f"It is {_published(found)[name] / value:.2f} times what was published.")
          for name, value in PUBLISHED.items()),
    ]
    return result


def _synchronous(found: list[Sample]) -> list[Check]:
    """One stripe at a time: the transfers of a channel's ways are seen."""
    rate = {drive: _mb_s(found, "stripes", drive) for drive in STRIPES}
    own = _published(found, "own")
    # 270 MB/s of the link, pages that begin a turn after the other, dies that carry and read in turn
    sequential = min(LINK, 4096 / TURN_READ, DIES * 4096 / (140e-6 + 4096 / RATE)) / 1e6
    programmed = DIES * 4096 / (940e-6 + 4096 / RATE)
    return [
        *(within(f"drive {drive}, one stripe at a time: writes (MB/s)", rate[drive], _stripe_predicted(drive), 0.01,
                 form("a stripe takes its channel's transfers, then a program")) for drive in STRIPES),
        *(within(f"drive {drive}, one stripe at a time, VSSIM's turns: writes (MB/s)", _mb_s(found, "turns", drive),
                 _turns_predicted(drive), 0.01, form("pages begin 33 us apart, or when their channel is free"))
          for drive in STRIPES),
        *(within(f"one stripe at a time: drive {b} over {a}", rate[b] / rate[a],
                 _stripe_predicted(b) / _stripe_predicted(a), 0.01,
                 form("a stripe takes its channel's transfers, then a program")) for a, b in DOUBLED),
        *(Check(f"one stripe at a time: drive {b} over {a}, as in the talk", rate[b] / rate[a], 0.92, 0.96,
                says(TALK, "AS # of ways is doubled and # of channels is reduced, the performance decreases by 4~8%"),
                f"It decreases by {1 - rate[b] / rate[a]:.1%}; the closed form gives "
                f"{1 - _stripe_predicted(b) / _stripe_predicted(a):.1%}.") for a, b in DOUBLED),
        within("X25-M by VSSIM's own file: sequential read by the form (MB/s)", own["sequential read (MB/s)"],
               sequential, 0.05, form("the slowest of link, turns and dies")),
        within("X25-M by VSSIM's own file: sequential write by the form (MB/s)", own["sequential write (MB/s)"],
               programmed / 1e6, 0.05, form("twenty dies carry and program in turn")),
        within("X25-M by VSSIM's own file: random write by the form (1000/s)", own["random write (1000/s)"],
               programmed / 4096 / 1000, 0.05, form("twenty dies carry and program in turn")),
        within("X25-M by VSSIM's own file: write amplification when all was written at random",
               _of(found, "own", "random-all")["write_amplification"], _greedy_all(), 0.1,
               form("greedy collection at 7.4% to spare, less a block a stream and GC's reserve"),
               f"Flash in use is {_of(found, 'own', 'random-all')['ratio']:.3f} times what the host sees, and a block "
               f"of the FTL is one on each of {DIES} dies; by greedy collection that is "
               f"{greedy(_of(found, 'own', 'random-all')['ratio'], 16 * DIES):.1f}."),
        *(within(f"X25-M by VSSIM's own file: {name}", own[name], value, 0.2, says(MAKER, f"{name}: {value:g}"),
                 f"It is {own[name] / value:.1f} times what was published." + (
                     f" When all of the drive was written at random before, it is "
                     f"{_of(found, 'own', 'random-all')['iops'] / 1000:.1f} thousand a second; the maker's condition "
                     "is not known." if name == "random write (1000/s)" else ""))
          for name, value in PUBLISHED.items()),
    ]


def _greedy_all() -> float:
    """Blocks in use over those that the host sees, where GC keeps two of 128 a die and two streams half of one."""
    return greedy((128 - 2 - 2 / 2) / (128 / 1.074), 16)


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["part", "of", "MB/s", "write amplification", "what else"]]
    rows += [["one stripe at a time", f"{d}, {c} x {w}", f"{_mb_s(found, 'stripes', d):.2f}", "-",
              f"closed form {_stripe_predicted(d):.2f}; with VSSIM's turns {_mb_s(found, 'turns', d):.2f}, closed form "
              f"{_turns_predicted(d):.2f}"] for d, (c, w, *_) in STRIPES.items()]
    rows += [["drives", f"{d}, {DRIVES[d][0]} x {DRIVES[d][1]}", f"{_mb_s(found, 'drives', f'{d}-0'):.2f}", "-",
              f"{_mb_s(found, 'drives', f'{d}-33'):.2f} with 33 us to switch"] for d in DRIVES]
    rows += [["page size", f"{kib} KiB, 4 channels", f"{_mb_s(found, 'pages', f'{kib}-4-through'):.2f}", "-",
              f"{_mb_s(found, 'pages', f'{kib}-4-buffered'):.2f} with a buffer"] for kib in PAGES]
    for mapping in ("page", *HYBRIDS):
        for channels, ways in ((1, 1), (4, 1), (8, 1), (4, 4)):
            random, copy = (_of(found, "shapes", f"{channels}-{ways}-{load}", mapping) for load in ("random", "copy"))
            rows.append(["channels, ways", f"{mapping}, {channels} x {ways}", f"{random['mb_s']:.2f}",
                         f"{random['write_amplification']:.2f}", f"copying files: {copy['mb_s']:.2f} MB/s"])
    for mapping in HYBRIDS:
        for share in SHARES:
            one, four = (_of(found, "shares", f"{share}-{n}", mapping) for n in (1, 4))
            rows.append([f"{share}% random", mapping, f"{one['mb_s']:.2f}", f"{one['write_amplification']:.2f}",
                         f"four logs in turn: {four['mb_s']:.2f} MB/s, {four['write_amplification']:.2f}"])
    for factor in FACTORS:
        fast, last = (_of(found, "factors", f"{factor}", m) for m in HYBRIDS)
        rows.append([f"{factor}% log blocks", "fast", f"{fast['mb_s']:.2f}", f"{fast['write_amplification']:.2f}",
                     f"last: {last['mb_s']:.2f} MB/s, {last['write_amplification']:.2f}"])
    for load in LOADS:
        for factor in FACTORS:
            mixed, moves, writes = (_of(found, "spare", f"{factor}-{load}-{kept}") for kept in KEPT)
            rows.append([f"{factor}% spare", f"page, {load}", f"{mixed['mb_s']:.2f}",
                         f"{mixed['write_amplification']:.2f}",
                         f"moves apart: {moves['mb_s']:.2f} MB/s, {moves['write_amplification']:.2f}; hot writes too: "
                         f"{writes['mb_s']:.2f}, {writes['write_amplification']:.2f}"])
    rows += [[of, name, "-", "-", f"{value:.1f}, published {PUBLISHED[name]:g}, "
                                  f"{100 * (value / PUBLISHED[name] - 1):+.0f}%"]
             for of, drive in (("X25-M", "x25m"), ("X25-M, VSSIM's own file", "own"))
             for name, value in _published(found, drive).items()]
    rows += [[of, "random write, all written before (1000/s)", "-",
              f"{_of(found, drive, 'random-all')['write_amplification']:.2f}",
              f"{_of(found, drive, 'random-all')['iops'] / 1000:.1f}"]
             for of, drive in (("X25-M", "x25m"), ("X25-M, VSSIM's own file", "own"))]
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(10, height=3.1)
    drives, pages, shapes, copies, shares, rates, factors, spare, stripes, x25m = panels
    figures.bars(drives, [f"{d}\n{c}x{w}" for d, (c, w, *_) in DRIVES.items()],
                 [figures.Bars(f"{switch} us to switch", [_mb_s(found, "drives", f"{d}-{switch}") for d in DRIVES])
                  for switch in (0, 33)], x="drive: channels x ways", y="MB/s", title="sequential writes")
    figures.lines(pages, [figures.Line(f"{n} channel{'s'[:n - 1]}, {name}", PAGES,
                                       [_mb_s(found, "pages", f"{kib}-{n}-{name}") for kib in PAGES],
                                       dashed=name == "through", colour=number)
                          for number, n in enumerate((1, 8)) for name in BUFFERS],
                  x="page (KiB)", y="MB/s", title="4 KiB random writes by page size", log2_x=True, columns=2)
    by_channels = [(c, 1) for c in CHANNELS]
    figures.lines(shapes, [figures.Line(f"{m}, {x}", at, [_mb_s(found, "shapes", f"{c}-{w}-random", m)
                                                         for c, w in points], dashed=x == "ways of 4 channels",
                                        colour=number)
                           for number, m in enumerate(HYBRIDS)
                           for x, at, points in (
                               ("channels", CHANNELS, by_channels),
                               ("ways of 4 channels", [4 * w for w in WAYS], [(4, w) for w in WAYS]))],
                  x="dies", y="MB/s", title="4 KiB random writes by dies", log2_x=True, columns=2)
    shapes.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    figures.lines(copies, [figures.Line(m, CHANNELS, [_mb_s(found, "shapes", f"{c}-{w}-copy", m)
                                                      for c, w in by_channels]) for m in ("page", *HYBRIDS)],
                  x="channels, a die each", y="MB/s", title="copying files", log2_x=True, columns=3)
    figures.lines(shares, [figures.Line(f"{m}, {n} log{'s in turn' if n > 1 else ''}", SHARES,
                                        [_of(found, "shares", f"{s}-{n}", m)["write_amplification"] for s in SHARES],
                                        dashed=n > 1, colour=number)
                           for number, m in enumerate(HYBRIDS) for n in (1, 4)],
                  x="random requests (%)", y="write amplification", title="random and sequential writes mixed",
                  columns=2)
    figures.lines(rates, [figures.Line(f"{m}, {n} log{'s in turn' if n > 1 else ''}",
                                       [_of(found, "shares", f"{s}-{n}", m)["write_amplification"] for s in SHARES],
                                       [_mb_s(found, "shares", f"{s}-{n}", m) for s in SHARES], dashed=n > 1,
                                       colour=number)
                          for number, m in enumerate(HYBRIDS) for n in (1, 4)],
                  x="write amplification", y="MB/s", title="rate over it, 0 to 100% random", columns=2)
    figures.lines(factors, [figures.Line(label, FACTORS, [_mb_s(found, "factors", f"{f}", m) for f in FACTORS],
                                         dashed=dashed)
                            for label, m, dashed in (("all mixed (FAST)", "fast", False),
                                                     ("hot and cold (LAST)", "last", True))],
                  x="log blocks (% of data)", y="MB/s", title="installing software, log blocks", log2_x=True, columns=2)
    figures.lines(spare, [figures.Line(f"{load}, {label}", FACTORS,
                                       [_mb_s(found, "spare", f"{f}-{load}-{kept}") for f in FACTORS],
                                       dashed=kept != "mixed", colour=colour)
                          for colour, load in enumerate(LOADS)
                          for kept, label in (("mixed", "mixed"), ("writes", "hot writes apart"))],
                  x="spare blocks (% of data)", y="MB/s", title="page mapping", log2_x=True, columns=2)
    figures.bars(stripes, [f"{d}\n{c}x{w}" for d, (c, w, *_) in STRIPES.items()],
                 [figures.Bars(label, [_mb_s(found, part, d) for d in STRIPES])
                  for label, part in (("no time to turn", "stripes"), ("33 us to turn", "turns"))],
                 x="drive: channels x ways", y="MB/s", title="one stripe at a time")
    figures.rows(x25m, list(PUBLISHED),
                 [figures.Bars("published", [100] * len(PUBLISHED)),
                  *(figures.Bars(label, [100 * v / PUBLISHED[k] for k, v in _published(found, drive).items()])
                    for label, drive in (("model", "x25m"), ("VSSIM's own file", "own")))],
                 x="% of what was published", title="X25-M")
    figures.save(figure, path)


ABOUT = About(
    title="VSSIM's talk: a drive's shape and its FTL",
    question="What do channels, ways, page size, log blocks, interleaving and spare flash do to a drive, and does hot "
             "and cold apart save five sixths of the spare?",
    by=("part", "mapping", "point"),
    caption="FAST and LAST are mappings with log blocks; logs are written one after the other, or four in turn. "
            "Random writes and copies are of small drives with 50/900/2000 us a page. Rates over write amplification "
            "are those of the panel beside, by the share of random requests. All is without a guest.")

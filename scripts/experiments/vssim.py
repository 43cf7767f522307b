# SPDX-License-Identifier: GPL-2.0
"""The figures of VSSIM's talk: what a drive's shape and its FTL do to each other.

Drives are the black box's own FTL and flash model without a guest (emulator/simulator/firmware.c); only the sizes of
requests come from a guest, with ext4 on a black box. The talk's axis labels are partly lost, and so are its bars: what
was taken for them is said at each part below. Its drives have 2 or 4 GB a die; these have a few MiB, in erase
blocks of 64 pages, so that seconds write all of them. Times of its own configuration file: 82 us to carry a page of
4 KiB over a channel, 33 us more when the channel turns to another die. VSSIM itself charges these when a request turns
to another channel. So drives with one stripe in flight, and X25-M by that file, have no such time.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from mtlab.exp import figures, fio
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, says, within
from mtlab.exp.sources import KNOWN, MAKER, TALK
from mtlab.run.options import MODEL, Options

RATE, SWITCH = 4096 / 82e-6, 33e-6              # of a channel
BUS = f"channel_rate={RATE:.0f} channel_switch_ns={SWITCH * 1e9:.0f}"
# channels, ways, page, read, program, erase in microseconds, as the talk has them
DRIVES = {"A": (8, 1, 2048, 60, 800, 1500), "B": (4, 2, 2048, 60, 800, 1500), "C": (2, 4, 2048, 60, 800, 1500),
          "D": (4, 1, 4096, 50, 900, 2000)}
# One request at a time, a page on each die: all drives of the talk.
STRIPES = DRIVES | {"E": (2, 2, 4096, 50, 900, 2000)}
DOUBLED = (("A", "B"), ("B", "C"), ("D", "E"))
PAGES, CHANNELS = (2, 4, 8, 16), (1, 2, 4, 8)   # KiB
BUFFERS = {"through": 0, "buffered": 1 << 20}
# 128 MiB in erase blocks of 256 KiB, each on one die; 64 logs for writes in any order and 16 for those in order.
SMALL = (f"sector=4096 page=4096 block_pages=64 zone_dies=1 read_ns=50000 program_ns=900000 erase_ns=2000000 {BUS} "
         "buffer=262144 spare_permille=250 gc_begin=95 hot_cold=1 depth=16")
BLOCKS, LOGS = 512, 80
WAYS = (1, 2, 4)
HYBRIDS = ("fast", "last")
RANDOM = "random=100 area=25 fill=100 age=100"  # a file's 4 KiB at random, as IOzone writes them
COPY = "random=0 large=65536 run=4194304"       # files of 4 MiB on an empty drive
SHARES = (0, 25, 50, 75, 100)                   # percent of random requests
MIXED = "large=16384 run=131072 streams=8 area=50 fill=100 age=100"
FACTORS = (2, 4, 8, 16, 32)                     # log blocks, or spare blocks, in percent of data blocks
INSTALL = "random=60 hot=90 hot_area=4 large=65536 run=524288 streams=4 area=50 fill=100 age=200"
# X25-M 80 GB of the second generation, as its maker published it; a link of 3 Gb/s carries 270 MB/s. Erase blocks, and
# their time, are an eighth of those of 128 pages; 7.4% is the difference between GiB and GB.
LINK, RECORD = 270e6, 512 << 10
X25M = f"sector=4096 page=4096 channels=10 dies=2 block_pages=16 blocks=128 read_ns=50000 program_ns=900000 " \
       f"erase_ns=250000 {BUS} cache=1 spare_permille=74 gc_begin=95 gc_urgent=100 hot_cold=1 buffer=1048576"
# The same drive by VSSIM's own configuration file: 140/940/2000 us, 82 us for the register, no cache register. Its
# erase blocks have 256 pages; these have 16, and a sixteenth of the time.
OWN = (f"sector=4096 page=4096 channels=10 dies=2 block_pages=16 blocks=128 read_ns=140000 program_ns=940000 "
       f"erase_ns=125000 channel_rate={RATE:.0f} spare_permille=74 gc_begin=95 gc_urgent=100 hot_cold=1 buffer=1048576")
X25MS = {"x25m": X25M, "own": OWN}
PUBLISHED = {"sequential read (MB/s)": 250, "sequential write (MB/s)": 70, "random read (1000/s)": 35,
             "random write (1000/s)": 6.6}
WORKLOADS = {
    "copy": {"rw": "write", "bs": "1m", "nrfiles": 8, "filesize": "4m", "create_on_open": 1},
    "install": {"rw": "write", "bs": "64k", "nrfiles": 200, "filesize": "2k-256k", "openfiles": 1, "create_on_open": 1},
    "mail": {"rw": "randrw", "bsrange": "4k-16k", "nrfiles": 60, "filesize": "16k-64k", "fsync": 4},
    "web": {"rw": "rw", "rwmixread": 90, "bs": "16k", "nrfiles": 60, "filesize": "16k-256k"},
    "office": {"rw": "randwrite", "bsrange": "4k-64k", "nrfiles": 20, "filesize": "512k", "fsync": 16},
}
BINS = (4, 16, 32, 64, 128)                     # KiB; and above
_TRACED = """T=/sys/kernel/tracing
echo 8192 >$T/buffer_size_kb
mkfs.ext4 -q /dev/nvme0n1; mount /dev/nvme0n1 /mnt
traced() { echo >$T/trace; echo 1 >$T/events/block/block_rq_issue/enable; "$@" >/dev/null; sync
           echo 0 >$T/events/block/block_rq_issue/enable; }
"""


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
           f"log_ways={in_turn}"


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
    """Hybrid mappings: log blocks; page mapping: spare ones, what is collected apart or not."""
    lines = []
    for factor in FACTORS:
        if mapping == "page":
            lines += [f"{factor}-{apart} {_hybrid('page', 4, 1, LOGS, 1)} {INSTALL} area=100 warm=500 "
                      f"requests={_count(quick, 3000)} hot_cold={apart} gc_urgent=100 gc_begin=100 "
                      f"spare_permille={30 + 10 * factor}" for apart in (0, 1)]
        else:
            # 384 data blocks
            lines.append(f"{factor} {_hybrid(mapping, 4, 1, max(1, 384 * factor // 100), 1)} {INSTALL} warm=500 "
                         f"requests={_count(quick, 3000)} spare_permille=333")
    return "\n".join(lines)


def _stripes(quick: bool) -> str:
    """The next request begins when all dies have programmed their page of the last one."""
    return "\n".join(
        f"{drive} sector={page} page={page} channels={channels} dies={ways} block_pages=64 blocks=64 read_ns={read}000 "
        f"program_ns={program}000 erase_ns={erase}000 channel_rate={RATE:.0f} fill=0 random=0 large={dies * page} "
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
        f"random-write {drive} {small} fill=100 age=10 area=10 depth=32 warm=500 requests={20 * n}"])


def _sizes() -> str:
    """Workloads on ext4, and what the block layer makes of them: fio jobs, not the talk's programs."""
    lines = ["set -e", _TRACED]
    for name, job in WORKLOADS.items():
        command = fio.command("/tmp/fio.json", directory=f"/mnt/{name}", direct=0, ioengine="psync", fallocate="none",
                              end_fsync=1, **job)
        lines += [f"mkdir /mnt/{name}",
                  # what reads or overwrites finds its files there
                  *([] if "create_on_open" in job else [f"{command} --create_only=1 >/dev/null; sync"]),
                  f"traced {command}",
                  f"grep -o 'W[A-Z]* [0-9]* ()' $T/trace | cut -d' ' -f2 | sort -n | uniq -c >{name}.sizes"]
    return "\n".join(lines)


def runs(quick: bool) -> list[Run]:
    model = Options(clock=MODEL)
    box = Options(clock="virtual", cpus=2, profile="femu", module=False, timeout=1800,
                  device={"zoned": "off", "flash.personality": "blackbox", "flash.size": "256M", "flash.spare": "33",
                          "flash.block_pages": "64"})
    return [Run("drives", _drives(quick), model, seconds=2), Run("pages", _pages(quick), model, seconds=5),
            *(Run(f"shapes-{m}", _shapes(m, quick), model, seconds=15) for m in ("page", *HYBRIDS)),
            *(Run(f"shares-{m}", _shares(m, quick), model, seconds=15) for m in HYBRIDS),
            *(Run(f"factors-{m}", _factors(m, quick), model, seconds=15) for m in ("page", *HYBRIDS)),
            Run("stripes", _stripes(quick), model, seconds=1),
            *(Run(name, _x25m(drive, quick), model, seconds=5) for name, drive in X25MS.items()),
            Run("sizes", _sizes(), box, ("*.sizes",), seconds=30)]


def _waf(told: Mapping[str, int]) -> float:
    return round((told["host"] + told["moved"] + told["filler"]) / told["host"], 4)


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []
    for run, outputs in files.items():
        part, _, mapping = run.partition("-")
        for file, data in sorted(outputs.items()):
            point = file.rsplit(".", 1)[0]
            if part == "sizes":
                found.append({"part": part, "point": point, **_binned(data.decode())})
                continue
            told = json.loads(data)
            sample = {"part": part, "mapping": mapping, "point": point, "mb_s": told["mb_s"], "iops": told["iops"],
                      "write_amplification": _waf(told) if told["host"] else 0}
            if part in X25MS:
                sample |= {f"{way}_{key}": value for way in ("reads", "writes") for key, value in told[way].items()
                           if key.startswith("p")}
            found.append(sample)
    return found


def _binned(text: str) -> Sample:
    """Shares of requests by size; flushes have none."""
    sizes = {int(size): int(count) for count, size in re.findall(r"(\d+) (\d+)", text) if int(size)}
    total, binned, below = sum(sizes.values()), {}, 0
    for edge in BINS:
        binned[f"to_{edge}k"] = round(sum(n for size, n in sizes.items() if below < size <= edge << 10) / total, 4)
        below = edge << 10
    return {"requests": total, **binned, "more": round(sum(n for size, n in sizes.items() if size > below) / total, 4)}


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


def _has_stripes(found: list[Sample]) -> bool:
    """Results that were measured before these parts came have none."""
    return any(s["part"] == "stripes" for s in found)


def _published(found: list[Sample], drive: str = "x25m") -> dict[str, float]:
    """What a model of X25-M does of what was published."""
    return {name: _of(found, drive, "-".join(name.split()[:2]))["mb_s" if "MB/s" in name else "iops"] /
            (1 if "MB/s" in name else 1000) for name in PUBLISHED}


def _least_factor(found: list[Sample], points: Mapping[int, str], mapping: str, rate: float) -> float:
    """The least factor that gives so many MB/s, between the measured ones on a straight line; inf: none does."""
    before: tuple[float, float] | None = None
    for factor, point in points.items():
        now = _mb_s(found, "factors", point, mapping)
        if now >= rate:
            if before is None:
                return factor
            return before[0] + (factor - before[0]) * (rate - before[1]) / (now - before[1])
        before = factor, now
    return float("inf")


def _sixths(found: list[Sample]) -> dict[str, float]:
    """By mapping: the spare that takes what hot and cold apart take at the least factor but one, over that factor."""
    of = {"log blocks": ({f: f"{f}" for f in FACTORS}, "last", {f: f"{f}" for f in FACTORS}, "fast"),
          "page mapping": ({f: f"{f}-1" for f in FACTORS}, "page", {f: f"{f}-0" for f in FACTORS}, "page")}
    return {name: min(_least_factor(found, mixed, m, _mb_s(found, "factors", apart[FACTORS[1]], a)), 2 * FACTORS[-1]) /
            FACTORS[1] for name, (apart, a, mixed, m) in of.items()}


def _carrying(found: list[Sample], drive: str) -> float:
    """The share of the time in which a drive's channels carry a page or turn to another die."""
    channels, _, page, *_ = DRIVES[drive]
    return _mb_s(found, "drives", f"{drive}-33") * 1e6 / page * (page / RATE + SWITCH) / channels


def _times(found: list[Sample], load: str, apart: str) -> str:
    """What eight channels give over one, with the other mappings."""
    gains = {m: _mb_s(found, "shapes", f"8-1-{load}", m) / _mb_s(found, "shapes", f"1-1-{load}", m)
             for m in ("page", *HYBRIDS) if m != apart}
    return " and ".join(f"{gain:.2f} ({m})" for m, gain in gains.items())


def _at_factors(found: list[Sample], name: str) -> str:
    """Rates by factor, apart and mixed."""
    apart, mixed = (("last", "{}"), ("fast", "{}")) if name == "log blocks" else (("page", "{}-1"), ("page", "{}-0"))
    rates = (", ".join(f"{_mb_s(found, 'factors', form_.format(f), m):.2f}" for f in FACTORS)
             for m, form_ in (apart, mixed))
    return (f"With {', '.join(map(str, FACTORS))}% spare: {next(rates)} MB/s with hot and cold apart, {next(rates)} "
            "without.")


def _bimodal(found: list[Sample]) -> float:
    """Share of all workloads' writes that are of 4 KiB at most, or of more than 64."""
    sizes = [s for s in found if s["part"] == "sizes"]
    total = sum(s["requests"] for s in sizes)
    return float(sum(s["requests"] * (s["to_4k"] + s["to_128k"] + s["more"]) for s in sizes) / total)


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
    if _has_stripes(found):
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
                     says(TALK, "More Parallelism, Higher Merge Overhead")),
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
        *(at_least(f"{name}: spare without hot and cold apart over that with, at the same rate", ratio, 6,
                   says(TALK, "Same performance with 1/6 of OP") if name == "log blocks" else
                   ours("a sixth, as the talk says of log blocks"), _at_factors(found, name))
          for name, ratio in _sixths(found).items()),
        at_least("requests of at most 4 or more than 64 KiB, share of all workloads' writes", _bimodal(found), 0.6,
                 says(TALK, "76% of write operations are either less than 4KB or larger than 64KB"),
                 "By job: " + ", ".join(f"{s['point']} {s['to_4k'] + s['to_128k'] + s['more']:.0%} of {s['requests']}"
                                        for s in found if s["part"] == "sizes") + "."),
        *(within(f"X25-M: {name}", _published(found)[name], value, 0.25, says(MAKER, f"{name}: {value:g}"))
          for name, value in PUBLISHED.items()),
    ]
    return result


def _synchronous(found: list[Sample]) -> list[Check]:
    """One stripe at a time: the transfers of a channel's ways are seen."""
    rate = {drive: _mb_s(found, "stripes", drive) for drive in STRIPES}
    own = _published(found, "own")
    return [
        *(within(f"drive {drive}, one stripe at a time: writes (MB/s)", rate[drive], _stripe_predicted(drive), 0.01,
                 form("a stripe takes its channel's transfers, then a program")) for drive in STRIPES),
        *(within(f"one stripe at a time: drive {b} over {a}", rate[b] / rate[a],
                 _stripe_predicted(b) / _stripe_predicted(a), 0.01,
                 form("a stripe takes its channel's transfers, then a program")) for a, b in DOUBLED),
        *(Check(f"one stripe at a time: drive {b} over {a}, as in the talk", rate[b] / rate[a], 0.92, 0.96,
                says(TALK, "AS # of ways is doubled and # of channels is reduced, the performance decreases by 4~8%"),
                f"It decreases by {1 - rate[b] / rate[a]:.1%}; the closed form gives "
                f"{1 - _stripe_predicted(b) / _stripe_predicted(a):.1%}.") for a, b in DOUBLED),
        *(within(f"X25-M by VSSIM's own file: {name}", own[name], value, 0.25, says(MAKER, f"{name}: {value:g}"),
                 f"It is {own[name] / value:.1f} times what was published.") for name, value in PUBLISHED.items()),
    ]


def table(found: list[Sample]) -> list[list[str]]:
    rows = [["part", "of", "MB/s", "write amplification", "what else"]]
    if _has_stripes(found):
        rows += [["one stripe at a time", f"{d}, {c} x {w}", f"{_mb_s(found, 'stripes', d):.2f}", "-",
                  f"closed form {_stripe_predicted(d):.2f}"] for d, (c, w, *_) in STRIPES.items()]
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
        mixed, apart = (_of(found, "factors", f"{factor}-{n}", "page") for n in (0, 1))
        rows += [[f"{factor}% log blocks", "fast", f"{fast['mb_s']:.2f}", f"{fast['write_amplification']:.2f}",
                  f"last: {last['mb_s']:.2f} MB/s, {last['write_amplification']:.2f}"],
                 [f"{factor}% spare", "page, mixed", f"{mixed['mb_s']:.2f}", f"{mixed['write_amplification']:.2f}",
                  f"hot and cold apart: {apart['mb_s']:.2f} MB/s, {apart['write_amplification']:.2f}"]]
    for s in (s for s in found if s["part"] == "sizes"):
        shares = ", ".join(f"to {edge}: {100 * s[f'to_{edge}k']:.0f}%" for edge in BINS)
        rows.append(["sizes (KiB)", s["point"], "-", "-", f"{s['requests']} writes; {shares}, more: "
                                                            f"{100 * s['more']:.0f}%"])
    rows += [[of, name, "-", "-", f"{value:.1f}, published {PUBLISHED[name]:g}, "
                                  f"{100 * (value / PUBLISHED[name] - 1):+.0f}%"]
             for of, drive in (("X25-M", "x25m"), ("X25-M, VSSIM's own file", "own"))
             if drive == "x25m" or _has_stripes(found) for name, value in _published(found, drive).items()]
    return rows


def draw(found: list[Sample], path: Path) -> None:
    figure, panels = figures.panels(8, height=3.1)
    drives, pages, shapes, copies, shares, factors, sizes, x25m = panels
    figures.bars(drives, [f"{d}: {c}x{w}" for d, (c, w, *_) in DRIVES.items()],
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
    figures.lines(factors, [figures.Line(label, FACTORS, [_mb_s(found, "factors", point.format(f), m) for f in FACTORS],
                                         dashed=dashed, colour=colour)
                            for label, m, point, dashed, colour in (
                                ("logs, mixed (FAST)", "fast", "{}", False, 0),
                                ("logs, hot and cold (LAST)", "last", "{}", True, 0),
                                ("page, mixed", "page", "{}-0", False, 1),
                                ("page, hot and cold", "page", "{}-1", True, 1))],
                  x="log or spare blocks (% of data)", y="MB/s", title="installing software", log2_x=True, columns=2)
    binned = {s["point"]: s for s in found if s["part"] == "sizes"}
    figures.stacked(sizes, list(binned), [figures.Bars(label, [100 * s[key] for s in binned.values()]) for label, key in
                                          ((*((f"to {edge} KiB", f"to_{edge}k") for edge in BINS), ("more", "more")))],
                    x="writes (%)", title="sizes of requests", columns=3)
    figures.rows(x25m, list(PUBLISHED),
                 [figures.Bars("published", [100] * len(PUBLISHED)),
                  *(figures.Bars(label, [100 * v / PUBLISHED[k] for k, v in _published(found, drive).items()])
                    for label, drive in (("model", "x25m"), ("VSSIM's own file", "own"))
                    if drive == "x25m" or _has_stripes(found))],
                 x="% of what was published", title="X25-M")
    figures.save(figure, path)


ABOUT = About(
    title="VSSIM's talk: a drive's shape and its FTL",
    question="What do channels, ways, page size, log blocks, interleaving and spare flash do to a drive, and does hot "
             "and cold apart save five sixths of the spare?",
    by=("part", "mapping", "point"),
    caption="FAST and LAST are mappings with log blocks; logs are written one after the other, or four in turn. "
            "Random writes and copies are of small drives with 50/900/2000 us a page. Sizes of requests are those "
            "of fio jobs on ext4 in a guest; all else is without a guest.")

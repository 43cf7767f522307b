# SPDX-License-Identifier: GPL-2.0
"""The FAST '24 artifact on fragmentation, by programs that do what its own do, on ext4.

Programs append to a file, overwrite it, let sqlite insert rows, or are ten users of a file server. All files are on an
ext4 with its journal elsewhere, mounted as the artifact mounts it; they are read with an empty page cache. This ext4
tells the drive what each write is to its file (kernel "hints"); the drive heeds that or not. The drive has the size of
the artifact's section 7. Then its additional evaluations: by the number of pieces, on a ramdisk, by the size of
requests, by their alignment, and with its pseudo approach.
"""

import itertools
import json
import random
from collections.abc import Mapping, Sequence
from math import gcd
from pathlib import Path
from statistics import median

from matplotlib.axes import Axes
from mtlab.build import guest, sourcekernel
from mtlab.exp import fast24, figures, fio, glibc
from mtlab.exp.experiments import About, Check, Run, Sample, at_least, at_most, form, ours, shown, within
from mtlab.exp.fast24 import LOADS, PRINTED, SERVERS
from mtlab.run.options import Options

FILE, PIECE, STRIPE, TIMES = 8192, 32, 256, 3           # KiB; how often a file is read
LAYOUTS = (1, 2, 3)             # seeds of the random gaps; the first stands for the artifact's own
FILLED = 200 << 20              # by rand(), before the artifact's programs draw their gaps by it
# Instructions a nanosecond where memory costs nothing: 2 GHz and one and a half a cycle. Of 1, 1.5 and 2 this brings
# both contiguous files that one program reads nearest to the artifact's; the other loads are predicted.
SPEED = 3
MIB = 1 << 20
DRIVE = {"flash.size": "13G", "nvme0.mdts": "6", "flash.booked": "on"}
MODES = {"off": False, "on": True}
# The artifact has 10,000 rows, 10,000 files, and a commit every 5 s. Its users append for 30 s, we know not how often.
ROWS, OTHERS = 1500, 100
FILES, CREATED, ROUNDS, COMMIT, SERVED_MS = 64, 128, 24, 4, 60
DEGREES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DEPTHS = {"drive": (1, 1023), "ramdisk": (1, 128)}
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
ALIGNS = (4, 8, 16, 32, 48, 64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 512, 640, 768, 1024)
AREA, ALIGNED_MS = 256, 20      # MiB that are read at random, ms a point
# The drive's times in microseconds: firmware of a read of 4 KiB and of a longer one, a page's read; MiB/s of a channel
# and of the link (profile fast24).
FIRMWARE, LONG_FIRMWARE, PAGE, CHANNEL, LINK, CHANNELS, DIES = 21.5, 30.49, 36.013, 800, 3360, 4, 8

FORMAT = """set -e -o pipefail
echo write through >/sys/block/nvme0n1/queue/write_cache
null_block() {
	mkdir /sys/kernel/config/nullb/$1
	for x in memory_backed=1 size=$2 blocksize=4096 power=1; do
		echo ${x#*=} >/sys/kernel/config/nullb/$1/${x%=*}
	done
}
null_block nullb0 256
mkdir -p files
fresh() {
	! grep -q "$PWD/files" /proc/mounts || umount files
	mke2fs -q -F -O journal_dev -b 4096 /dev/nullb0
	mkfs.ext4 -q -F -J device=/dev/nullb0 -m 0 -b 4096 $1 $2
	mount -o nodelalloc $1 files
	echo 0 >/sys/fs/ext4/${1#/dev/}/reserved_clusters
	echo 4200000000 >/sys/fs/ext4/${1#/dev/}/mb_stream_req
}
drive() { fresh /dev/nvme0n1 10G; }
cold() { dev=$(grep "$PWD/files" /proc/mounts | cut -d' ' -f1); umount files; mount -o nodelalloc $dev files; }
times() { for i in $(seq TIMES); do cold; "$@"; done; }
told() { sed "s/^/$1 /" >>found; }
""".replace("TIMES", str(TIMES))


def _gaps(kind: str, layout: int, piece: int = PIECE) -> str:
    """What is written behind each piece, in KiB."""
    count = FILE // piece
    if kind == "worst":
        sizes: Sequence[int] = [-piece % STRIPE or STRIPE] * count
    elif kind == "pseudo":
        sizes = [STRIPE] * count
    elif layout == LAYOUTS[0]:
        sizes = [piece * (x % 32 + 1) for x in glibc.rand(FILLED, count)]
    else:
        chance = random.Random(layout)
        sizes = [piece * chance.randint(1, 32) for _ in range(count)]
    if len(set(sizes)) == 1:
        return f"for i in $(seq {count}); do echo {sizes[0]}; done"
    return f"echo {' '.join(map(str, sizes))}"


def _made(verb: str, kind: str, layout: int = 0, piece: int = PIECE) -> str:
    return f"{_gaps(kind, layout, piece)} | ./guest-files {verb} files {FILE} {piece}"


def _read(name: str) -> str:
    return f"times ./guest-files read files T0.data 1024 {name}"


def _one_file(verb: str, kind: str, layout: int, label: str) -> str:
    """A file that is made in pieces, and read; one that is overwritten is read before, too."""
    align = f"./guest-files align files {PIECE}; "
    before = (f"{align}./guest-files whole files {FILE}; {_read('contiguous')} | told '{label}'; "
              if verb == "overwrite" else "")
    return f"drive; {before}{align}{_made(verb, kind, layout)}; {_read(verb)} | told '{label}'"


def _hypothetical(quick: bool) -> str:
    kinds = [("worst", 0), *(("random", layout) for layout in (LAYOUTS[:1] if quick else LAYOUTS))]
    return FORMAT + "\n".join(_one_file(verb, kind, layout, f"{kind} {layout}")
                              for verb in ("append", "overwrite") for kind, layout in kinds)


def _sqlite(mode: str) -> str:
    others = 0 if mode == "contiguous" else OTHERS
    return FORMAT + (f"drive; ./guest-sqlite files {ROWS} {others}\n"
                     f"times ./guest-sqlite files {ROWS} | told sqlite")


def _server(append: int, mode: str) -> str:
    if mode == "contiguous":
        make = f"./guest-files copy files {FILES} {CREATED + ROUNDS * append}"
    else:
        make = (f"./guest-files create files {FILES} {CREATED}\n"
                f"./guest-files grow files {FILES} {append} {ROUNDS} {COMMIT}")
    return FORMAT + f"drive\n{make}\ncold\n./guest-files serve files {FILES} {SERVED_MS} read | told server"


def _by_pieces(device: str) -> str:
    """Files in 1 to 256 pieces; then each is read at once, with few and with many commands in flight."""
    name = {"drive": "nvme0n1", "ramdisk": "loop0"}[device]
    lines = [f"queue=/sys/block/{name}/queue/nr_requests", {
        "drive": "drive", "ramdisk": "mkdir ram; mount -t tmpfs ram ram; truncate -s 1G ram/image\n"
        "losetup /dev/loop0 ram/image; fresh /dev/loop0"}[device]]
    for degree in DEGREES:
        step, gap = min(FILE // degree, 1024), -(FILE // degree) % STRIPE or STRIPE
        parts = FILE // degree // step          # a piece is appended by 1 MiB at most
        lines.append(f"for i in $(seq {degree}); do for j in $(seq {parts}); do echo $((j < {parts} ? 0 : {gap})); "
                     f"done; done | ./guest-files append files {FILE} {step}; "
                     f"mv files/T0.data files/{degree}; rm files/D*")
    for degree, depth in itertools.product(DEGREES, DEPTHS[device]):
        lines.append(f"echo {depth} >$queue; [ $(cat $queue) = {depth} ]\n"
                     f"cold; ./guest-files read files {degree} {FILE} '{degree} {depth}' | told {device}")
    return FORMAT + "\n".join(lines)


def _pseudo() -> str:
    return FORMAT + "\n".join(_one_file(verb, "pseudo", 0, "pseudo") for verb in ("append", "overwrite"))


def _raw() -> str:
    """Reads of the drive itself: by size, and by what their places are multiples of."""
    fill = fio.command("fill.out", filename="/dev/nvme0n1", rw="write", bs="512k", size=f"{AREA}M")
    size = fio.command("size-$depth-$size.json", filename="/dev/nvme0n1", rw="randread", bs="${size}k",
                       size=f"{AREA}M", io_size="$((8 * (depth > 1 ? 8 : 1)))M", ioengine="libaio", iodepth="$depth")
    align = fio.command("align-$align.json", filename="/dev/nvme0n1", rw="randread", bs="4k", ba="${align}k",
                        size=f"{AREA}M", norandommap=True, ioengine="libaio", iodepth=4, numjobs=8, time_based=True,
                        runtime=f"{ALIGNED_MS}ms")
    return (f"set -e\n{fill}\nfor depth in 1 32; do for size in {' '.join(map(str, SIZES))}; do\n{size}\ndone; done\n"
            f"for align in {' '.join(map(str, ALIGNS))}; do\n{align}\ndone")


def runs(quick: bool) -> list[Run]:
    files = [guest.program("guest-files")]
    database = [guest.program("guest-sqlite", kind=(), libraries=("-lsqlite3",))]
    result = []

    def add(name: str, script: str, hints: bool = False, cpus: int = 2, push: Sequence[Path] = files,
            pull: str = "found", seconds: float = 30) -> None:
        options = Options(clock="virtual", cpus=cpus, speed=SPEED, memory_model="server", profile="fast24",
                          kernel=sourcekernel.HINTS, timeout=1800, module=False, push=push,
                          append=sourcekernel.BOOT.strip(),
                          device=DRIVE | {"flash.hints": "on" if hints else "off"})
        result.append(Run(name, script, options, (pull,), seconds=seconds))

    for mode, hints in MODES.items():
        add(f"hypothetical {mode}", _hypothetical(quick), hints)
    if quick:
        return result
    for mode in ("contiguous", *MODES):
        add(f"sqlite {mode}", _sqlite(mode), mode == "on", push=database)
    for append, mode in itertools.product(SERVERS, ("contiguous", *MODES)):
        add(f"server-{append} {mode}", _server(append, mode), mode == "on", cpus=4)
    for device in DEPTHS:
        add(f"pieces {device}", _by_pieces(device))
    add("pseudo off", _pseudo())
    add("raw off", _raw(), pull="*.json", cpus=4)
    return result


def _found(data: bytes) -> list[tuple[tuple[str, ...], float]]:
    """The words of lines, and MiB/s of all lines that begin with the same."""
    sums: dict[tuple[str, ...], list[int]] = {}
    for line in data.decode().splitlines():
        *words, size, ns = line.split()
        one = sums.setdefault(tuple(words), [0, 0])
        one[0] += int(size)
        one[1] += int(ns)
    return [(words, size / ns * 1e9 / MIB) for words, (size, ns) in sums.items()]


def _by_size(data: bytes, depth: int, size: int) -> float:
    """MiB/s: one at a time by how long a read takes, as the artifact advises, because fio's time has milliseconds."""
    if depth > 1:
        return float(fio.sample(data, "read")["bytes_per_s"]) / MIB
    mean = float(json.loads(data[data.index(b"{"):])["jobs"][0]["read"]["lat_ns"]["mean"])
    return size / 1024 / mean * 1e9


def samples(files: Mapping[str, Mapping[str, bytes]]) -> list[Sample]:
    found: list[Sample] = []

    def add(part: str, what: str, hints: str, rate: float, x: int = 0) -> None:
        found.append({"part": part, "what": what, "hints": hints, "x": x, "mib_per_s": round(rate, 1)})

    for name, outputs in files.items():
        run, mode = name.split()
        if run == "raw":
            for output, data in sorted(outputs.items()):
                kind, *numbers = output.removesuffix(".json").split("-")
                if kind == "align":
                    sample = fio.sample(data, "read", ALIGNED_MS / 1000)
                    add(kind, "32 in flight", "off", sample["bytes_per_s"] / MIB, int(numbers[0]))
                else:
                    add(kind, f"queue depth {numbers[0]}", "off", _by_size(data, *map(int, numbers)), int(numbers[1]))
            continue
        for words, rate in _found(outputs["found"]):
            if run == "hypothetical":
                add("file", f"{words[2]} {words[0]}", mode, rate, int(words[1]))
            elif run == "pieces":
                add(words[0], f"queue depth {words[2]}", "off", rate, int(words[1]))
            elif run == "pseudo":
                if words[1] != "contiguous":
                    add("pseudo", words[1], "off", rate)
            else:
                load = SERVERS[int(run.removeprefix("server-"))] if run.startswith("server") else run
                what = f"{load} contiguous" if mode == "contiguous" else load
                add("load", what, "off" if mode == "contiguous" else mode, rate)
    return found


def _value(found: list[Sample], part: str, what: str, hints: str = "off", x: int | None = None) -> float:
    """The median over layouts."""
    return float(median(s["mib_per_s"] for s in found if (s["part"], s["what"], s["hints"]) == (part, what, hints)
                        and x in (None, s["x"])))


def _of_line(found: list[Sample], name: str, hinted: bool) -> float:
    """What the artifact prints in its line of that name."""
    if name == "contiguous":
        return _value(found, "file", "contiguous worst")
    return _value(found, "load" if name.startswith(LOADS) else "file", name, "on" if hinted else "off")


def _names(quick: bool) -> list[str]:
    return [name for name in PRINTED if not quick or not name.startswith(LOADS)]


def _printed_lines(quick: bool) -> list[tuple[str, bool]]:
    return [(name, hinted) for name in _names(quick)
            for hinted in ((False,) if name.endswith("contiguous") else (False, True))]


def _of_contiguous(name: str) -> str:
    return next((f"{load} contiguous" for load in reversed(LOADS) if name.startswith(load)), "contiguous")


def checks(found: list[Sample], quick: bool) -> list[Check]:
    result = []
    for name, hinted in _printed_lines(quick):
        rate, base = _of_line(found, name, hinted), _of_contiguous(name)
        label = f"{name}{', hints' if hinted else ''}"
        result.append(within(
            f"{label} (MiB/s)", rate, PRINTED[name][hinted], 0.1, fast24.line(name, hinted),
            f"It is {rate / PRINTED[name][hinted]:.2f} times what the artifact prints; its contiguous file is read at "
            f"{_of_line(found, base, False) / PRINTED[base][0]:.2f} times that."))
        if name != base:
            result.append(within(f"{label}, over contiguous", rate / _of_line(found, base, False),
                                 PRINTED[name][hinted] / PRINTED[base][0], 0.1, fast24.line(name, hinted)))
    return result if quick else [*result, *_additional(found)]


def _one_page(size: int) -> float:
    """MiB/s of one read at a time of a page or a part of it."""
    transfer = size / 1024 * (1 / CHANNEL + 1 / LINK) * 1e6
    return size / 1024 / ((FIRMWARE if size == 4 else LONG_FIRMWARE) + PAGE + transfer) * 1e6


def _dies(align: int) -> int:
    """How many dies hold the places that are multiples of so many KiB."""
    return DIES // (gcd(align, STRIPE) * DIES // STRIPE or 1)


def _additional(found: list[Sample]) -> list[Check]:
    one_die = 32 / 1024 / (PAGE + 32 / 1024 / CHANNEL * 1e6) * 1e6
    whole = 8 / (LONG_FIRMWARE + PAGE + 8 / (CHANNELS * CHANNEL) * 1e6) * 1e6
    deep, flat = (f"queue depth {depth}" for depth in reversed(DEPTHS["drive"]))
    result = [
        within("drive: 256 pieces on one die, queue depth 1023 (MiB/s)", _value(found, "drive", deep, x=256), one_die,
               0.1, form("one die reads a page and sends it, then the next one")),
        within("drive: one piece, queue depth 1023 (MiB/s)", _value(found, "drive", deep, x=1), whole, 0.1,
               form("four channels, after one page")),
        within("drive: 256 pieces, queue depth 1 (MiB/s)", _value(found, "drive", flat, x=256), _one_page(32), 0.15,
               form("a page at a time: firmware, read, channel, link; software adds to it")),
        within("drive: 32 pieces over one, queue depth 1", _value(found, "drive", flat, x=32) /
               _value(found, "drive", flat, x=1), 1, 0.05, form("a command has 256 KiB at most, a piece has as many")),
        at_least("drive: what 256 pieces cost, queue depth 1023 over 1",
                 _value(found, "drive", deep, x=1) / _value(found, "drive", deep, x=256) /
                 (_value(found, "drive", flat, x=1) / _value(found, "drive", flat, x=256)), 1.5,
                 ours("with one command at a time a die that is met twice costs nothing")),
    ]
    for depth in DEPTHS["ramdisk"]:
        one, most = (_value(found, "ramdisk", f"queue depth {depth}", x=d) for d in (1, 256))
        result.append(at_least(f"ramdisk: 256 pieces over one, queue depth {depth}", most / one, 0.5,
                               ours("memory has no dies: only software pays for pieces"),
                               f"{most:.0f} against {one:.0f} MiB/s."))
    result += [
        within(f"{size} KiB random reads, queue depth 1 (MiB/s)", _value(found, "size", "queue depth 1", x=size),
               _one_page(size), 0.25, form("firmware, read, channel, link; software adds to it"))
        for size in (4, 8, 16, 32)]
    result.append(within("8 MiB in one request, queue depth 32 (MiB/s)",
                         _value(found, "size", "queue depth 32", x=8192), whole, 0.1,
                         form("four channels, after one page")))
    all_dies = _value(found, "align", "32 in flight", x=4)
    single = 4 / 1024 / (PAGE + 4 / 1024 / CHANNEL * 1e6) * 1e6
    for align in ALIGNS[ALIGNS.index(64):]:
        rate, dies = _value(found, "align", "32 in flight", x=align), _dies(align)
        if dies == DIES:
            result.append(within(f"4 KiB reads aligned to {align} KiB, over 4 KiB", rate / all_dies, 1, 0.05,
                                 form("all dies hold such places")))
        else:
            result.append(within(f"4 KiB reads aligned to {align} KiB (MiB/s)", rate, dies * single, 0.15,
                                 form(f"{dies} of {DIES} dies hold such places, and a die reads one after the other")))
    contiguous = _value(found, "file", "contiguous worst")
    for verb, like in (("append", _value(found, "file", "append worst", "on")), ("overwrite", contiguous)):
        result.append(within(f"pseudo approach, {verb}, over {'hints' if verb == 'append' else 'contiguous'}",
                             _value(found, "pseudo", verb) / like, 1, 0.1,
                             form("others write a stripe: the next piece falls on the next die")))
    return [*result, at_most("append worst over pseudo approach", _value(found, "file", "append worst") /
                             _value(found, "pseudo", "append"), 0.5, ours("what the pseudo approach is for"))]


def table(found: list[Sample]) -> list[list[str]]:
    quick = not any(s["part"] == "load" for s in found)
    rows = [["read", "artifact", "here", "artifact, hints", "here, hints"]]
    at = {(s["what"], s["hints"]): s for s in found if s["part"] == "load"}
    for name in _names(quick):
        cells = []
        for hinted in (False, True):
            key = name, "on" if hinted else "off"
            none = hinted and name.endswith("contiguous")
            if none:
                cells += ["-", "-"]
                continue
            here = shown(at[key], "mib_per_s", ".0f") if key in at else f"{_of_line(found, name, hinted):.0f}"
            cells += [f"{PRINTED[name][hinted]:.0f}", here]
        rows.append([name, *cells])
    rows += [[f"pseudo approach, {s['what']}", "-", f"{s['mib_per_s']:.0f}", "-", "-"]
             for s in found if s["part"] == "pseudo"]
    return rows


def draw(found: list[Sample], path: Path) -> None:
    quick = not any(s["part"] == "load" for s in found)
    figure, panels = figures.panels(1 if quick else 6, height=3.2)
    hypothetical = _names(True)
    groups = {"one file": hypothetical, "sqlite, fileserver": [x for x in PRINTED if x not in hypothetical]}
    for panel, (title, names) in zip(panels, groups.items(), strict=False):
        labels = [x.replace("overwrite", "over- write").replace("fileserver", "server").replace("contiguous", "contig.")
                  .replace(" ", "\n") for x in names]
        series = []
        for hinted in (False, True):
            mark = ", hints" if hinted else ""
            here = [_of_line(found, x, hinted and not x.endswith("contiguous")) for x in names]
            series += [figures.Bars(f"artifact{mark}", [PRINTED[x][hinted] for x in names]),
                       figures.Bars(f"here{mark}", here)]
        figures.bars(panel, labels, series, y="MiB/s", title=f"{title}, ext4")
    if not quick:
        _draw_additional(found, panels[2:])
    figures.save(figure, path)


def _draw_additional(found: list[Sample], panels: Sequence[Axes]) -> None:
    for panel, part, kinds, title, x in (
            (panels[0], "drive", [f"queue depth {d}" for d in DEPTHS["drive"]], "pieces on one die", "pieces of 8 MiB"),
            (panels[1], "ramdisk", [f"queue depth {d}" for d in DEPTHS["ramdisk"]], "pieces on a ramdisk",
             "pieces of 8 MiB"),
            (panels[2], "size", ["queue depth 1", "queue depth 32"], "8 MiB at random, by the size of reads",
             "request (KiB)"),
            (panels[3], "align", ["32 in flight"], "4 KiB random reads, by alignment", "multiples of (KiB)")):
        lines = []
        for kind in kinds:
            points = sorted((s["x"], s["mib_per_s"]) for s in found if (s["part"], s["what"]) == (part, kind))
            lines.append(figures.Line(kind, [p[0] for p in points], [p[1] for p in points]))
        figures.lines(panel, lines, x=x, y="MiB/s", title=title, log2_x=part != "align",
                      ticks=tuple(4 ** n for n in range(1, 7)) if part == "size" else
                      tuple(range(0, 1025, 256)) if part == "align" else (), columns=2)


ABOUT = About(
    title="Fragmentation, by the artifact's programs",
    question="What does the FAST '24 artifact measure of files in pieces, on ext4, without and with hints?",
    by=("part", "what", "hints", "x"),
    caption="MiB/s of files on ext4 with its journal on another device, read with an empty page cache. One file: "
            "8 MiB, appended to or overwritten by 32 KiB, read by 1 MiB, direct; random is the median of three "
            "layouts. sqlite: all rows selected. fileserver: ten users read whole files, which grew by 32 KiB "
            "(small: 16). Artifact: what it prints for NVMeVirt without and with its approach. Below, the additional "
            "evaluations, which have no printed numbers: files in pieces with few and many commands in flight, and "
            "reads of the drive itself.")

# SPDX-License-Identifier: GPL-2.0
"""`lab c2c`: what the CPUs of a run shared, line by line of memory, the most expensive first.

A run in virtual time under a model of memory, whose emulator writes down each access that another CPU had a hand in
(emulator/accel/tcg/sharing.c says in what form). Addresses become names here: functions by the guest's kallsyms; for
modules of ours also structures and fields, by the debug information that the compiler left. An instruction that has
`48(%rbx)` for an operand, in a line of source that speaks of `->credit`, accesses a `credit` that lies at 48 of some
structure. That says where the object is, and with it what the kernel's own functions (locks) did there. It is a guess
where structures have fields of one name at one place; then the variable's name decides.
"""

import bisect
import functools
import re
import subprocess
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LINE = 64
KINDS = ("load", "store", "locked")
LISTED = 20
# Where x86-64 without KASLR has what no symbol names.
REGIONS = ((0xffff888000000000, 0xffffc88000000000, "memory"), (0xffffc90000000000, 0xffffe90000000000, "vmalloc"),
           (0xffffea0000000000, 0xffffeb0000000000, "struct page"), (0, 0x800000000000, "user"))
# What a command may say: count from here on, and no further.
FUNCTIONS = r"""port() { printf "$1" | dd of=/dev/port bs=1 seek=249 conv=notrunc 2>/dev/null; }
count_on() { port '\001'; }
count_off() { port '\000'; }
"""
KALLSYMS = "kallsyms"


@dataclass
class Access:
    """What one instruction did to one address."""

    pc: int
    kind: int
    far: bool               # another socket had a hand in it
    count: int
    ns: float
    cpus: int
    line: int
    address: int


@dataclass
class Misses:
    """Accesses of one instruction that no other CPU had a hand in."""

    pc: int
    far: bool
    count: int
    ns: float


def _rows(text: str) -> dict[tuple[str, str], float]:
    """Of a printed report: ns by title and name."""
    found, title = {}, ""
    for line in text.splitlines():
        if match := re.match(r" +[0-9.]+ times +([0-9.]+) ns +(?:\d+ lines +)?(\S.*)", line):
            if not match[2].startswith("line "):
                found[title, match[2]] = float(match[1])
        elif line:
            title = line
    return found


def compared(before: str, after: str, listed: int = LISTED) -> str:
    """What one printed report has more or less than another one, the largest difference first."""
    old, new = _rows(before), _rows(after)
    out = []
    for title in dict.fromkeys(title for title, _ in [*new, *old]):
        rows = [(new.get(key, 0) - old.get(key, 0), old.get(key, 0), new.get(key, 0), key[1])
                for key in {*old, *new} if key[0] == title]
        rows = sorted((row for row in rows if abs(row[0]) >= 0.05), key=lambda x: (-abs(x[0]), x[3]))[:listed]
        out += ["", f"{title}, against the run before"]
        out += [f"{change:+10.1f} ns, {was:.1f} to {now:.1f}   {name}" for change, was, now, name in rows]
    return "\n".join(out) + "\n"


def wrapped(command: str) -> str:
    """A command that brings the kernel's symbols along."""
    return f"{FUNCTIONS}{command}\nstatus=$?\ncat /proc/kallsyms > {KALLSYMS}\nexit $status"


def parse(text: str) -> tuple[list[Access], list[Misses]]:
    """The emulator's file."""
    shared, missed = [], []
    for words in map(str.split, text.splitlines()):
        pc, cpus = int(words[1], 16), int(words[6], 16)
        kind, far, count, ns = int(words[2]), words[3] == "1", int(words[4]), int(words[5]) / 1000
        if words[0] == "share":
            shared.append(Access(pc, kind, far, count, ns, cpus, int(words[7], 16), int(words[8], 16)))
        else:
            missed.append(Misses(pc, far, count, ns))
    return shared, missed


class Symbols:
    """The guest's kallsyms."""

    def __init__(self, text: str) -> None:
        found = sorted((int(w[0], 16), w[2], w[3].strip("[]") if len(w) > 3 else "")
                       for w in map(str.split, text.splitlines()) if w[1] not in "aA")
        self.addresses = [x[0] for x in found]
        self.names = found

    def at(self, address: int) -> tuple[str, str]:
        """Name and module of what is there; "" for neither."""
        i = bisect.bisect_right(self.addresses, address) - 1
        if address < 0xffffffff80000000 or i < 0:
            return "", ""
        start, name, module = self.names[i]
        return (name if address - start < 1 << 20 else ""), module


@dataclass
class Struct:
    """A structure's size and members, those of structures inside it too."""

    name: str
    size: int
    members: list[tuple[int, int, str]] = field(default_factory=list)      # offset, size, path

    def at(self, offset: int) -> str:
        """The path of the member there: the innermost."""
        inside = [(size, path) for start, size, path in self.members if start <= offset < start + max(size, 1)]
        return min(inside, key=lambda x: (x[0], -len(x[1])))[1] if inside else f"+{offset}"


@dataclass
class Die:
    """An entry of the debug information, as far as it says what structures are made of."""

    tag: str = ""
    name: str = ""
    size: int = -1              # -1: what its type says
    place: int = 0              # in the structure around it
    count: int = 0              # of an array's elements
    type: int = -1              # where that entry is
    children: list["Die"] = field(default_factory=list)

    def set(self, key: str, value: str) -> None:
        """An attribute as readelf writes it; some versions say its form first, in parentheses."""
        number = re.sub(r"^\(\w+\) *", "", value).split("\t")[0].split(",")[0].strip()
        if key == "name":
            self.name = value.rsplit(": ", 1)[-1].rsplit(") ", 1)[-1]
        elif key == "type":
            self.type = int(number.strip("<>"), 16)
        elif re.fullmatch(r"\d+|0x[0-9a-f]+", number):
            if key == "byte_size":
                self.size = int(number, 0)
            elif key == "data_member_location":
                self.place = int(number, 0)
            else:
                self.count = int(number, 0) + (key == "upper_bound")


class Debug:
    """The structures of a compiled file."""

    def __init__(self, dump: Iterable[str]) -> None:
        """From readelf's dump."""
        begins = re.compile(r" *<([0-9a-f]+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)")
        attribute = re.compile(r" +<[0-9a-f]+> +DW_AT_(name|byte_size|data_member_location|type|upper_bound|count) *: "
                               r"(.*)")
        self.dies: dict[int, Die] = {}
        stack: list[Die] = []
        die = Die()
        for text in dump:
            if match := begins.match(text):
                die = self.dies[int(match[2], 16)] = Die(match[3])
                depth = int(match[1], 16)
                del stack[depth:]
                if stack:
                    stack[-1].children.append(die)
                stack.append(die)
            elif match := attribute.match(text):
                die.set(match[1], match[2].strip())

    def _type(self, die: Die) -> Die:
        return self.dies.get(die.type, Die(size=0))

    def _size(self, die: Die) -> int:
        if die.size >= 0:
            return die.size
        size = self._size(self._type(die))
        for child in die.children if die.tag == "array_type" else []:
            size *= child.count
        return size

    def _members(self, die: Die, at: int, path: str) -> list[tuple[int, int, str]]:
        found = []
        for child in die.children:
            if child.tag == "member":
                name = ".".join(x for x in (path, child.name) if x)
                inner = self._type(child)
                found.append((at + child.place, self._size(inner), name))
                while inner.tag in ("typedef", "volatile_type", "const_type"):
                    inner = self._type(inner)
                if inner.tag in ("structure_type", "union_type"):
                    found += self._members(inner, at + child.place, name)
        return found

    def structs(self, names: Container[str]) -> list[Struct]:
        """Those of these names."""
        found = {die.name: die for die in self.dies.values()
                 if die.tag == "structure_type" and die.size >= 0 and die.name in names}
        return [Struct(name, die.size, self._members(die, 0, "")) for name, die in found.items()]


@functools.cache
def _lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


class Module:
    """A module as it was compiled: instructions, lines of source, the structures that its sources define."""

    def __init__(self, ko: Path, source: Path, symbols: Symbols) -> None:
        self.ko, self.folder = ko, source
        self.name = ko.stem.replace("-", "_")
        loaded = {name: address for address, name, module in symbols.names if module == self.name}
        table = {w[-1]: int(w[0], 16) for w in map(str.split, self._tool("objdump", "-t", "-j", ".text", ko))
                 if w[2:4] == ["F", ".text"]}
        shifts = [loaded[n] - v for n, v in table.items() if n in loaded]
        self.base = max(set(shifts), key=shifts.count) if shifts else 0
        self.operands = self._operands()
        self.sources: dict[int, list[str]] = defaultdict(list)
        self.structs = self._structs()

    @staticmethod
    def _tool(*args: str | Path) -> list[str]:
        return subprocess.run(args, capture_output=True, text=True, check=True).stdout.splitlines()

    def _operands(self) -> dict[int, int]:
        """Of each instruction that has memory for an operand, the displacement."""
        found = {}
        for text in self._tool("objdump", "-d", "--no-show-raw-insn", "-j", ".text", self.ko):
            match = re.match(r" *([0-9a-f]+):\t.*?(-?0x[0-9a-f]+)?\(%", text)
            if match:
                found[int(match[1], 16)] = int(match[2] or "0", 16)
        return found

    def _structs(self) -> list[Struct]:
        with subprocess.Popen(["readelf", "-W", "--debug-dump=info", self.ko], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL) as dump:
            assert dump.stdout
            return Debug(dump.stdout).structs(self._own())

    def _own(self) -> set[str]:
        """The structures that its sources define, not the kernel's headers."""
        return {name for path in self.folder.glob("*.[ch]")
                for name in re.findall(r"^struct (\w+) \{", path.read_text(), re.M)}

    def read_sources(self, pcs: Iterable[int]) -> None:
        """Learn the lines of source of these instructions, those of functions that were inlined there too."""
        wanted = sorted({hex(pc - self.base) for pc in pcs if pc - self.base in self.operands})
        offset = 0
        for text in self._tool("addr2line", "-a", "-i", "-j", ".text", "-e", self.ko, *wanted) if wanted else []:
            name, _, number = text.split(" ")[0].rpartition(":")
            path = self.folder / Path(name).name
            if not name:
                offset = int(text, 16)
            elif number.isdigit() and path.exists():
                self.sources[offset].append(_lines_of(path)[int(number) - 1].strip())

    def accessed(self, pc: int) -> list[tuple[Struct, int, float]]:
        """What the instruction may access: structure, place in it, how likely by the variable's name."""
        offset = pc - self.base
        if offset not in self.operands:
            return []
        place = self.operands[offset]
        said = re.findall(r"(\w*)(?:\[.*\])?(?:->|\.)(\w+)", " ".join(self.sources[offset]))
        fields = {name for _, name in said}
        variables = {name.rstrip("s") for name, _ in said if len(name) > 2}
        found = []
        for s in self.structs:
            depths = [path.count(".") for start, size, path in s.members
                      if start <= place < start + max(size, 1) and path.split(".")[-1] in fields]
            if depths:
                named = any(v in s.name.split("_") for v in variables)
                found.append((s, place, (10 if named else 1) / (1 + min(depths))))
        return found


@dataclass
class Report:
    """All that was shared, with names."""

    shared: list[Access]
    missed: list[Misses]
    symbols: Symbols
    modules: Sequence[Module]
    objects: dict[int, Struct] = field(default_factory=dict)        # where they begin

    def __post_init__(self) -> None:
        votes: dict[tuple[int, str], float] = defaultdict(float)
        structs: dict[str, Struct] = {}
        by_name = {module.name: module for module in self.modules}
        for module in self.modules:
            module.read_sources({a.pc for a in self.shared if self.symbols.at(a.pc)[1] == module.name})
        for access in self.shared:
            if owner := by_name.get(self.symbols.at(access.pc)[1]):
                for struct, place, weight in owner.accessed(access.pc):
                    votes[access.address - place, struct.name] += access.count * weight
                    structs[struct.name] = struct
        taken: list[tuple[int, int]] = []
        for (base, name), _ in sorted(votes.items(), key=lambda x: (-x[1], x[0])):
            struct = structs[name]
            if not any(base < end and start < base + struct.size for start, end in taken):
                taken.append((base, base + struct.size))
                self.objects[base] = struct
        self.bases = sorted(self.objects)

    def what(self, address: int) -> str:
        """The name of what is at an address."""
        i = bisect.bisect_right(self.bases, address) - 1
        if i >= 0 and address - self.bases[i] < self.objects[self.bases[i]].size:
            struct = self.objects[self.bases[i]]
            return f"{struct.name}.{struct.at(address - self.bases[i])}"
        name, module = self.symbols.at(address)
        if name:
            return name + (f" [{module}]" if module else "")
        return next((f"{text} {address:x}" for low, high, text in REGIONS if low <= address < high), f"{address:x}")

    def function(self, pc: int) -> str:
        name, module = self.symbols.at(pc)
        return (name or f"{pc:x}") + (f" [{module}]" if module else "")

    def lines(self) -> list[tuple[int, list[Access]]]:
        """Lines of memory with their accesses, both the most expensive first."""
        found: dict[int, list[Access]] = defaultdict(list)
        for access in self.shared:
            found[access.line].append(access)
        return sorted(((line, sorted(rows, key=lambda a: -a.ns)) for line, rows in found.items()),
                      key=lambda x: (-sum(a.ns for a in x[1]), x[0]))

    def fields(self) -> list[tuple[str, int, float, int]]:
        """What was shared, all objects of a kind together: name, how often, ns, lines."""
        found: dict[str, list[Access]] = defaultdict(list)
        for access in self.shared:
            found[re.sub(r" [0-9a-f]{6,}$", "", self.what(access.address))].append(access)
        rows = [(name, sum(a.count for a in x), sum(a.ns for a in x), len({a.line for a in x}))
                for name, x in found.items()]
        return sorted(rows, key=lambda x: (-x[2], x[0]))

    def functions(self, accesses: Iterable[Access | Misses]) -> list[tuple[str, int, float]]:
        """What each function did: name, how often, ns."""
        found: dict[str, list[float]] = defaultdict(lambda: [0, 0])
        for access in accesses:
            total = found[self.function(access.pc)]
            total[0] += access.count
            total[1] += access.ns
        return sorted(((name, int(count), ns) for name, (count, ns) in found.items()), key=lambda x: (-x[2], x[0]))

    def text(self, operations: int, listed: int = LISTED) -> str:
        """As `lab c2c` prints it."""
        per = max(operations, 1)
        unit = "an operation" if operations else "in all"
        far: list[list[Access | Misses]] = [[a for a in self.shared if a.far], [m for m in self.missed if m.far]]

        def total(what: Iterable[Access | Misses], name: str) -> str:
            counts, times = zip((0, 0), *((a.count, a.ns) for a in what))
            return f"{sum(counts) / per:.3f} {name}, {sum(times) / per:.1f} ns"

        out = [f"{total(self.shared, f'transfers {unit}')}; {total(self.missed, 'misses without another CPU')}"]
        if any(far):
            out += [f"of these from another socket: {total(far[0], 'transfers')}; {total(far[1], 'misses')}"]
        out += ["", "Lines of memory, the most expensive first"]
        for line, rows in self.lines()[:listed]:
            out.append(f"{sum(a.count for a in rows) / per:10.3f} times {sum(a.ns for a in rows) / per:10.1f} ns   "
                       f"line {line:x}")
            merged: dict[tuple[str, str, str], list[Access]] = defaultdict(list)
            for a in rows:
                merged[self.what(a.address), KINDS[a.kind], self.function(a.pc)].append(a)
            for (what, kind, function), some in list(merged.items())[:8]:
                cpus = functools.reduce(lambda x, a: x | a.cpus, some, 0)
                out.append(f"    {sum(a.count for a in some) / per:10.3f} {sum(a.ns for a in some) / per:10.1f} ns  "
                           f"{kind:6}  {what:40}  {function} on {cpus.bit_count()} CPUs")
        out += ["", "The same by what is there"]
        out += [f"{count / per:10.3f} times {ns / per:10.1f} ns   {lines:5} lines  {name}"
                for name, count, ns, lines in self.fields()[:listed]]
        for title, functions in (("The same by function", self.functions(self.shared)),
                                 ("Misses without another CPU, by function", self.functions(self.missed)),
                                 ("Transfers from another socket, by function", self.functions(far[0])),
                                 ("Misses that went to another socket, by function", self.functions(far[1]))):
            if not functions:
                continue
            out += ["", title]
            out += [f"{count / per:10.3f} times {ns / per:10.1f} ns   {name}" for name, count, ns in functions[:listed]]
        return "\n".join(out) + "\n"

# SPDX-License-Identifier: GPL-2.0
"""What a run in a guest is told besides its command, and which flash devices there are.

Each option is declared once, as a field of Options: its default, its words for --help and docs/lab/guests.md, its
place on the command line, and what makes a value wrong.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..build import kernels
from ..util.base import ROOT, LabError

PROFILES = ROOT / "emulator/profiles"
STOCK = "stock"
NONE = "none"
NAMESPACE = "/dev/nvme0n1"
MOST_DRIVES = 8
SOCKETS = {"server2": 2}    # of the models of memory that have more than one
MOST_CHANGES, MOST_PERIOD, MOST_SEED = 8, 10_000_000, (1 << 63) - 1     # that the emulator takes
SEED = 42
MODEL = "model"             # a clock: no guest, the model of flash by itself (firmware.py)
CLOCKS = ("wall", "virtual")
_DECLARED = "declared"
_TABLE, _TABLE_END = "<!-- options: scripts/lab report --readme -->", "<!-- end of options -->"


@dataclass(frozen=True)
class Declared:
    """An option as users see it."""

    help: str
    metavar: str = ""
    flag: str = ""                                      # where it is not the field's name
    more: dict[str, Any] = field(default_factory=dict)  # for argparse
    wrong: Callable[[Any, "Options"], str] | None = None    # why a value that is not the default cannot be, or ""


def _option(default: Any, help: str, metavar: str = "", *, flag: str = "",
            wrong: Callable[[Any, "Options"], str] | None = None, **more: Any) -> Any:
    declared = {_DECLARED: Declared(help, metavar, flag, more, wrong)}
    if isinstance(default, dict | list):
        return field(default_factory=type(default), metadata=declared)
    return field(default=default, metadata=declared)


def _properties(text: str) -> dict[str, str]:
    found = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise LabError(f"--device {item}: expected KEY=VALUE")
        found[key] = value
    return found


def profiles() -> list[str]:
    """Names that --profile takes."""
    return sorted(p.stem for p in PROFILES.glob("*.cfg")) + [STOCK, NONE]


def default_profile() -> str:
    return "tlc" if (PROFILES / "tlc.cfg").exists() else STOCK


def _virtual_only(_value: Any, options: "Options") -> str:
    return "" if options.clock == "virtual" else "only virtual time has it, expected --clock virtual"


def _wrong_schedule(schedule: int, options: "Options") -> str:
    if options.stall or options.memory_model:
        return "it is instead of stalls, and knows no caches, expected no --stall and no --memory-model"
    if options.kernel == "kcsan":
        return "KCSAN waits for CPUs that are held then, expected another --kernel"
    return _virtual_only(schedule, options) if 1 <= schedule <= MOST_SEED else f"expected 0 to {MOST_SEED}"


def _wrong_changes(changes: int, options: "Options") -> str:
    if not options.schedule:
        return "expected --schedule, too"
    return "" if 0 <= changes <= MOST_CHANGES else f"expected 0 to {MOST_CHANGES}"


def _wrong_period(period: int, options: "Options") -> str:
    if not options.schedule:
        return "expected --schedule, too"
    return "" if 1 <= period <= MOST_PERIOD else f"expected 1 to {MOST_PERIOD}"


def _wrong_cpus(cpus: int, options: "Options") -> str:
    sockets = SOCKETS.get(options.memory_model, 1)
    return f"{options.memory_model} needs a multiple of {sockets}" if cpus % sockets else ""


def _wrong_clock(clock: str, _options: "Options") -> str:
    return "" if clock in CLOCKS else f"expected {' or '.join(CLOCKS)}"


def _wrong_kernel(kernel: str, _options: "Options") -> str:
    kernels.check(kernel)
    return ""


def _wrong_profile(profile: str, _options: "Options") -> str:
    return "" if not profile or profile in profiles() else f"no profile '{profile}': there are {', '.join(profiles())}"


def _wrong_drives(drives: int, options: "Options") -> str:
    if profile_of(options) in (STOCK, NONE):
        return "there are several of the lab's own flash devices only, expected another --profile"
    if options.before:
        return "--before prepares a single drive, expected no --before"
    return "" if 1 <= drives <= MOST_DRIVES else f"expected 1 to {MOST_DRIVES}"


def _wrong_packages(packages: Sequence[str], options: "Options") -> str:
    if options.host_root:
        return "the command sees the host's programs instead, expected no --host-root"
    return next((f"'{word}': expected PACKAGE or PACKAGE/SUITE" for word in packages
                 if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+(/[a-z-]+)?", word)), "")


def _wrong_push(paths: Sequence[Path], _options: "Options") -> str:
    return next((f"there is no file {path}" for path in paths if not path.exists()), "")


def _wrong_before(_before: str, options: "Options") -> str:
    if options.media:
        return "it prepares a drive of the run's own, expected no --media"
    if profile_of(options) == NONE:
        return "there is no drive, expected another --profile"
    return _virtual_only(_before, options)


def _wrong_every(every: int, options: "Options") -> str:
    return "" if options.watch and 10 <= every <= 60_000 else "expected 10 to 60000, with --watch"


def _wrong_root(_host_root: bool, options: "Options") -> str:
    return "" if options.clock == "wall" else "virtual time could not repeat it, expected --clock wall"


@dataclass
class Options:
    """What a run needs to know besides its command; the defaults are those of scripts/lab run."""

    kernel: str = _option(kernels.DEFAULT, "Debian's kernel of that series, one that the lab builds, a folder in which "
                          "a kernel was built, or an image",
                          "6.12|6.1|current|kasan|kcsan|pblk|small|hints|upstream|PATH", wrong=_wrong_kernel)
    clock: str = _option("wall", "wall: as fast as the host can; virtual: lockstep, the same to the bit on every run",
                         choices=CLOCKS, wrong=_wrong_clock)
    cpus: int = _option(2, "processors of the guest", "N", wrong=_wrong_cpus)
    memory: str = _option("2G", "memory of the guest", "SIZE")
    quantum: int = _option(1000, "virtual time: instructions that a CPU runs before the next one's turn", "Q")
    speed: int = _option(1, "virtual time: instructions a nanosecond and core", "N")
    memory_model: str = _option("", "virtual time: what accesses to memory cost: server, server2 or desktop; without "
                                "it nothing", "NAME", wrong=_virtual_only)
    sharing: Path | None = None             # with a model of memory: this file gets what the CPUs share
    stall: int = _option(0, "virtual time: each CPU stands still now and then, for up to NS, as on a busy host; "
                         "0: never", "NS", wrong=_virtual_only)
    stall_every: int = _option(100_000, "virtual time: mean ns that a CPU runs between two stalls", "NS")
    schedule: int = _option(0, "virtual time: one CPU goes on at a time, by priorities that this seed draws; 0: all do",
                            "SEED", wrong=_wrong_schedule)
    changes: int = _option(0, "virtual time: so many times a period the CPU that goes on gets a priority below all "
                           "that were drawn", "D", wrong=_wrong_changes)
    period: int = _option(1_000_000, "virtual time: instructions after which priorities are drawn anew", "N",
                          wrong=_wrong_period)
    seed: int = _option(SEED, "virtual time: seed of the emulator's random numbers, stalls included", "N")
    profile: str = _option("", f"flash device: {', '.join(profiles())}; without it {default_profile()}", "NAME",
                           wrong=_wrong_profile)
    device: dict[str, str] = _option({}, "properties of the namespace (nvme0.KEY: of the controller, subsys0.KEY: of a "
                                     "subsystem) that replace the profile's", "KEY=VALUE,...", type=_properties)
    drives: int = _option(1, "flash devices like that one, each with a controller and an image of its own: "
                          "/dev/nvme0n1, /dev/nvme1n1, ...", "N", wrong=_wrong_drives)
    media: Path | None = _option(None, "keep the flash's content in this file; of a second drive in FILE1, and so on",
                                 "FILE", type=Path)
    before: str = _option("", "virtual time: a guest of its own runs this first; what its drive then holds is kept, "
                          "and each run with the same COMMAND here starts with a copy of it", "COMMAND",
                          wrong=_wrong_before)
    timeout: float = _option(300, "seconds of the host's clock that the command may take", "S")
    boot_timeout: float = 600               # and for what comes before it
    silence: float = 600                    # of that, before the console says its first word
    push: Sequence[Path] = _option([], "files to put into /root", "FILE", nargs="+", type=Path, wrong=_wrong_push)
    pull: Sequence[str] = _option([], "files (patterns) to bring out", "FILE", nargs="+", type=str)
    packages: Sequence[str] = _option([], "Debian packages that the guest has, with all that they depend on; of this "
                                      "machine's suite, or of SUITE", "PACKAGE[/SUITE]", flag="with", nargs="+",
                                      type=str, wrong=_wrong_packages)
    module: bool = _option(True, "leave out the target and its tool", flag="no-module", action="store_false")
    append: str = _option("", "more of the kernel's command line", "WORDS")
    qemu: Sequence[str] = _option([], "more of QEMU's command line", "ARGS", action="append")
    host_root: bool = _option(False, "the command sees all of the host's files and programs; what it writes stays in "
                              "the guest's memory", action="store_true", wrong=_wrong_root)
    watch: Path | None = _option(None, "let `lab top DIR` and `lab view DIR` show what flash and target do", "DIR",
                                 type=Path)
    watch_every: int = _option(500, "milliseconds of the guest's clock from one look of `--watch` to the next", "MS",
                               wrong=_wrong_every)
    boot: bool = _option(False, "boot from scratch, not from a saved state", action="store_true")
    recall: bool = False                    # virtual time: the same inputs may give what they gave before


def _declared() -> Iterator[tuple["Field[Any]", Declared]]:
    """Options that the command line has."""
    for one in fields(Options):
        if _DECLARED in one.metadata:
            yield one, one.metadata[_DECLARED]


def _flag(one: "Field[Any]", declared: Declared) -> str:
    return f"--{declared.flag or one.name.replace('_', '-')}"


def _default(one: "Field[Any]") -> Any:
    return one.default if one.default is not MISSING else one.default_factory()  # type: ignore[misc]


def _shown_default(one: "Field[Any]") -> str:
    """A default that a user may want to know."""
    value = _default(one)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def add_options(parser: argparse.ArgumentParser, only: Sequence[str] = (), without: Sequence[str] = ()) -> None:
    """The options on a command line: all, or only some."""
    for one, declared in _declared():
        if one.name in without or (only and one.name not in only):
            continue
        more = dict(declared.more)
        if "action" not in more and "type" not in more:
            more["type"] = one.type
        if declared.metavar:
            more["metavar"] = declared.metavar
        shown = _shown_default(one)
        parser.add_argument(_flag(one, declared), dest=one.name, default=_default(one),
                            help=declared.help + (f"; default {shown}" if shown else ""), **more)


def options_from(args: argparse.Namespace) -> Options:
    """The options that a command line gave; the others have their defaults."""
    return Options(**{one.name: getattr(args, one.name) for one, _ in _declared() if hasattr(args, one.name)})


def check(options: Options) -> None:
    """Refuse values that cannot be, by the option's name."""
    for one, declared in _declared():
        value = getattr(options, one.name)
        if declared.wrong and value != _default(one) and (why := declared.wrong(value, options)):
            raise LabError(f"{_flag(one, declared)}{'' if isinstance(value, bool | list) else f' {value}'}: {why}")


def table() -> str:
    """The options as docs/lab/guests.md shows them."""
    rows = ["| option | default | what it does |", "|---|---|---|"]
    for one, declared in _declared():
        name = " ".join(filter(None, (_flag(one, declared), declared.metavar.replace("|", "\\|")
                                      or "\\|".join(declared.more.get("choices", ())))))
        rows.append(f"| `{name}` | {_shown_default(one)} | {declared.help} |")
    return "\n".join(rows)


def update_docs(text: str) -> str:
    """A page with the table as the options are declared."""
    before, rest = text.split(_TABLE)
    return f"{before}{_TABLE}\n\n{table()}\n\n{rest[rest.index(_TABLE_END):]}"


def bytes_of(size: str) -> int:
    """Of memory, as QEMU's -m has it."""
    units = {"M": 20, "G": 30}
    if not size[:-1].isdigit() or size[-1:] not in units:
        raise LabError(f"--memory {size}: give a number with M or G")
    return int(size[:-1]) << units[size[-1]]


def nodes_of(options: Options) -> list[int]:
    """Bytes of the nodes that the guest's memory is in: one for each socket of the model of memory."""
    sockets = SOCKETS.get(options.memory_model, 1)
    return [bytes_of(options.memory) // sockets] * sockets


def profile_of(options: Options) -> str:
    """The name of the device that a run has."""
    return options.profile or default_profile()


def namespaces(options: Options) -> list[str]:
    """The flash devices as the guest names them."""
    return [] if profile_of(options) == NONE else [f"/dev/nvme{i}n1" for i in range(options.drives)]

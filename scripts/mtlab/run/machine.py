# SPDX-License-Identifier: GPL-2.0
"""One run of a command in a guest, from its inputs to its result.

All of a run's files are in a folder of its own, removed at the end. The console goes to a file, which never makes
the guest wait.
"""

import contextlib
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..build import emulator, guest, kernels, packages, sourcekernel, target
from ..util import stop
from ..util.base import BUILD, LabError, digest, free_memory, memory_at_once, need_space, say
from . import failure, outcome, prepared, process, qemu, states
from .options import PROFILES, Options, bytes_of, namespaces, nodes_of
from .options import check as check_options
from .outcome import Result


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A run's own folder; gone at the end, also after a signal."""
    base = Path(os.environ["TMPDIR"]) if os.environ.get("TMPDIR") else BUILD / "run"
    base.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="lab-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _flash_in_memory(options: Options, folder: Path) -> Iterator[None]:
    """What this run's drives hold is in memory if there is enough of it, because it is of no use afterwards.

    A file's pages take the host twice as long, and go to its disk.
    """
    if options.media or memory_at_once() < bytes_of(options.memory) + qemu.flash_size(options):
        yield
        return
    with contextlib.ExitStack() as files:
        for drive in range(options.drives):
            memory = os.memfd_create("flash")
            files.callback(os.close, memory)
            qemu.media_of(options, folder, drive).symlink_to(f"/proc/{os.getpid()}/fd/{memory}")
        yield


def check(options: Options) -> None:
    """Refuse what cannot work before anything is built."""
    check_options(options)
    need_memory(options.memory)
    need_space(BUILD, 1, "a run")


def need_memory(wanted: str) -> None:
    """Say before the guest starts that the host cannot hold it."""
    available = free_memory()
    if available is not None and available < bytes_of(wanted) // 2:
        raise LabError(f"the guest is given {wanted}, the host has {available >> 20} MiB available")


def write_initrd(path: Path, parts: Sequence[Path], own: bytes) -> None:
    """The cached archives and the run's own, one behind the other; the kernel unpacks them in order."""
    with open(path, "wb") as f:
        for part in parts:
            with open(part, "rb") as source:
                while os.sendfile(f.fileno(), source.fileno(), None, 1 << 30):
                    pass
        f.write(own)


@dataclass(frozen=True)
class RunPlan:
    """What a run in a guest is a function of. The folders of its files and of the lab do not count."""

    boot: tuple[str, ...]           # how the guest boots; names of emulator, kernel and archives hold their hashes
    firmware: tuple[Path, ...]      # files that it may execute
    own: bytes                      # this run's archive: its command, its files, the target
    clock: tuple[str, ...]          # QEMU's arguments for processors and clock
    making: tuple[str, ...]         # the same of the guest whose saved state fits
    device: tuple[str, ...]         # QEMU's arguments for the flash device, in a folder of no name
    described: tuple[Path, ...]     # files of this project that these arguments name
    may_be_saved: bool              # can it begin from a saved state?
    drive: "RunPlan | None" = None  # the run that prepares its drive

    @functools.cached_property
    def key(self) -> str:
        """A digest of all that its saved boot state is a function of; "": it boots from scratch."""
        return digest(*self.boot, *self.making, *self.firmware) if self.may_be_saved else ""

    @functools.cached_property
    def inputs(self) -> str:
        """A digest of all that the guest sees."""
        return digest(self.key, *self.boot, self.own, *self.clock, *self.device, *self.described,
                      *([self.drive.inputs] if self.drive else []))


@dataclass(frozen=True)
class _Parts:
    """What is built for a run, and how the guest's kernel is called."""

    binary: Path
    kernel: kernels.Kernel
    archives: tuple[Path, ...]
    append: str


def _build(options: Options) -> _Parts:
    """Build what is missing."""
    kernel = kernels.get(options.kernel)
    archives = (guest.base(), guest.tools(), *filter(None, [packages.archive(tuple(options.packages)),
                                                            guest.modules(kernel)]))
    append = f"{qemu.BOOT}{qemu.CLOCK_BOOT[options.clock]} {options.append}".strip()
    return _Parts(emulator.build(), kernel, archives, append)


def _archive(command: str, options: Options, parts: _Parts) -> bytes:
    """What this run adds to the guest."""
    programs = [target.tool()] if options.module else []
    if options.kernel == sourcekernel.PBLK:
        programs.append(guest.program("guest-pblk"))
    if options.host_root:
        command = guest.in_host_root(command, parts.kernel)
    return guest.run_archive(command, pushed=options.push, pulled=options.pull,
                             insmod=target.module(parts.kernel) if options.module else None, programs=programs,
                             wait_for=" ".join(namespaces(options)),
                             shell=qemu.watch_settings(options, 2), below=guest.tools())


def plan(command: str, options: Options, accel: str, parts: _Parts) -> RunPlan:
    """What a run will be, before it is."""
    own = _archive(command, options, parts)
    drive = plan(options.before, _preparing(options), accel, parts) if options.before else None
    # A saved guest has no mark of how long a CPU's turns were, nor of what accesses to memory cost; and stalls and
    # priorities begin with the run.
    making = replace(options, quantum=Options.quantum, memory_model="", sharing=None, stall=0, schedule=0, changes=0,
                     seed=Options.seed)
    nowhere = Path("/nowhere")
    device = [x.replace(str(nowhere), "").replace(str(PROFILES), "") for x in qemu.device_arguments(options, nowhere)]
    # A user's arguments for QEMU may ask for another machine.
    may_be_saved = not (options.boot or options.host_root or options.qemu or options.clock == "wall"
                        or len(own) > outcome.AREA - outcome.PAYLOAD)
    return RunPlan(boot=(parts.binary.parent.name, parts.kernel.key, *(p.name for p in parts.archives), parts.append,
                         str(options.cpus), options.memory, *qemu.node_arguments(options)),
                   firmware=tuple(emulator.firmware()), own=own,
                   clock=tuple(qemu.clock_arguments(options, accel)),
                   making=tuple(qemu.clock_arguments(making, accel)), device=tuple(device),
                   described=tuple(qemu.profile_files(options)), may_be_saved=may_be_saved, drive=drive)


def _preparing(options: Options) -> Options:
    """The options of the run that prepares the drive of another one."""
    return replace(options, before="", pull=[prepared.KEPT], watch=None, sharing=None, recall=False)


def inputs(command: str, options: Options, *, accel: str) -> str:
    """The digest of all that the guest of such a run sees. Builds what is missing first."""
    return plan(command, options, accel, _build(options)).inputs


def run(command: str, options: Options, *, accel: str, on_output: Callable[[str], None] | None = None,
        on_console: Callable[[str], None] | None = None) -> Result:
    """Start a guest, run a command in it, end it. Builds what is missing first."""
    check(options)
    parts = _build(options)
    planned = plan(command, options, accel, parts)
    try:
        return _start(command, planned, parts, options, accel, on_output, on_console)
    except states.BootError as e:
        say(f"no saved boot state: {e}; booting from scratch")
        scratch = replace(planned, may_be_saved=False,
                          drive=planned.drive and replace(planned.drive, may_be_saved=False))
        return _start(command, scratch, parts, replace(options, boot=True), accel, on_output, on_console)


def _start(command: str, planned: RunPlan, parts: _Parts, options: Options, accel: str,
           on_output: Callable[[str], None] | None, on_console: Callable[[str], None] | None) -> Result:
    """Carry out a plan, in a folder of its own, if nothing is known of a run of the same inputs."""
    if options.recall and (before := outcome.recall(planned.inputs)):
        return before
    started = planned
    with folder() as place, _flash_in_memory(options, place):
        if planned.drive:
            prepare = functools.partial(_prepare, planned.drive, parts, _preparing(options), accel)
            kept = prepared.get(planned.drive.inputs, prepare, qemu.media_of(options, place))
            # These files are a function of the drive's own inputs, which the digest of this run's holds.
            started = replace(planned, own=_archive(command, replace(options, push=[*options.push, kept]), parts))
        result = _judged(planned, options, accel, _emulate(started, parts, options, place, on_output, on_console))
    if options.recall and result.ok:
        outcome.keep(result)
    return result


def _prepare(planned: RunPlan, parts: _Parts, options: Options, accel: str, to: Path) -> Mapping[str, bytes]:
    """Run the guest that prepares a drive, and put what the drive then holds into a file; returns the guest's files."""
    with folder() as place, _flash_in_memory(options, place):
        ended = _emulate(planned, parts, options, place, None, None)
        result = _judged(planned, replace(options, pull=[]), accel, ended)      # files to keep are its own choice
        if not result.ok:
            tail = "\n".join(result.output.splitlines()[-15:])
            raise LabError(f"--before: {result.failure or f'exit status {result.status}'}\n{tail}")
        prepared.copy(qemu.media_of(options, place), to)
    return result.files


@dataclass(frozen=True)
class _Ended:
    """What a guest left when its emulator ended."""

    wrong: failure.Failure | None       # as far as seen from outside
    status: int                         # the emulator's
    said: str                           # by the emulator
    output: str
    console: str
    left: tuple[int, dict[str, bytes]] | None
    seconds: float
    worked: float


def _emulate(planned: RunPlan, parts: _Parts, options: Options, place: Path,
             on_output: Callable[[str], None] | None, on_console: Callable[[str], None] | None) -> _Ended:
    """A run from its start to its end; from its saved state, which is made if it is missing."""
    def booting(own: bytes) -> list[str]:
        write_initrd(place / "initrd", parts.archives, own)
        return qemu.boot_arguments(parts.kernel, place / "initrd", parts.append)

    def make() -> list[str]:
        return [*qemu.machine_arguments(parts.binary, options, planned.making), *booting(b""),
                "-serial", "chardev:console", "-serial", "null", "-serial", "null"]

    key = planned.key
    qemu.make_media(options, place)
    with (states.get(key, make, nodes_of(options), options.boot_timeout, stop.pulse) if key
          else contextlib.nullcontext()) as state:
        outcome.write_area(place / "area", planned.own if state else b"")
        for name in ("console", "output"):
            (place / name).touch()
        console = process.Tail(place / "console", on_console, state.console if state else "")
        output = process.Tail(place / "output", on_output)
        begin = state.arguments if state else [*qemu.memory_arguments(options), *booting(planned.own)]
        args = [*qemu.machine_arguments(parts.binary, options, planned.clock), *begin,
                *qemu.run_arguments(options, place)]
        started = time.monotonic()
        wrong, status, worked = process.emulate(args, place / "qemu", state, console, output, options)
    seconds = time.monotonic() - started
    said = (place / "qemu").read_text(errors="replace").strip()
    if state and states.LOAD_FAILED in said:
        states.throw_away(key)
        raise states.BootError(said)
    return _Ended(wrong, status, said, output.text, console.text, outcome.parse_area(place / "area"), seconds,
                  worked)


def _judged(planned: RunPlan, options: Options, accel: str, ended: _Ended) -> Result:
    """What a run came to."""
    wrong = outcome.find_failure(ended.wrong, ended.left, ended.console, ended.said or ended.console, ended.status,
                          options.pull)
    status, files = ended.left or (0, {})
    return Result(wrong.status if wrong else status, wrong, ended.output, ended.console, files, ended.seconds,
                  planned.inputs, "virtual time" if options.clock == "virtual" else accel,
                  planned.key or outcome.BOOTED, ended.worked)

# SPDX-License-Identifier: GPL-2.0
"""One run of a command in a guest, from its inputs to its result.

All of a run's files are in a folder of its own, removed at the end. The console goes to a file, which never makes
the guest wait.
"""

import contextlib
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..build import emulator, guest, kernels, sourcekernel, target
from ..util import stop
from ..util.base import BUILD, LabError, digest, free_memory, memory_at_once, need_space, say
from . import process, qemu, results, states
from .options import NAMESPACE, PROFILES, SOCKETS, Options, bytes_of, nodes_of, profiles
from .results import Result


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
    """What this run's drive holds is in memory where there is enough of it, for nobody sees it afterwards.

    A file's pages take the host twice as long, and go to its disk.
    """
    if options.media or memory_at_once() < bytes_of(options.memory) + qemu.flash_size(options):
        yield
        return
    memory = os.memfd_create("flash")
    (folder / "media").symlink_to(f"/proc/{os.getpid()}/fd/{memory}")
    try:
        yield
    finally:
        os.close(memory)


def check(options: Options) -> None:
    """Refuse what cannot work before anything is built."""
    if options.clock not in ("wall", "virtual"):
        raise LabError(f"no clock '{options.clock}': there are wall, virtual")
    if options.host_root and options.clock == "virtual":
        raise LabError("the host's root folder is no input that virtual time could repeat: take --clock wall")
    if options.memory_model and options.clock != "virtual":
        raise LabError("--memory-model: the wall clock needs no model of memory: take --clock virtual")
    if options.stall and options.clock != "virtual":
        raise LabError("--stall: only in virtual time can a CPU be made to stand still: take --clock virtual")
    if options.cpus % SOCKETS.get(options.memory_model, 1):
        raise LabError(f"--memory-model {options.memory_model}: {options.cpus} CPUs are not to be halved")
    if options.profile and options.profile not in profiles():
        raise LabError(f"no profile '{options.profile}': there are {', '.join(profiles())}")
    kernels.check(options.kernel)
    for path in options.push:
        if not path.exists():
            raise LabError(f"--push {path}: there is no such file")
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


def _may_be_saved(options: Options, own: bytes) -> bool:
    """Can this run begin from a saved state? A user's arguments for QEMU may ask for another machine."""
    return not (options.boot or options.host_root or options.qemu or options.clock == "wall"
                or len(own) > results.AREA - results.PAYLOAD)


def run(command: str, options: Options, *, accel: str, on_output: Callable[[str], None] | None = None,
        on_console: Callable[[str], None] | None = None) -> Result:
    """Start a guest, run a command in it, end it. Builds what is missing first."""
    check(options)
    try:
        return _run(command, options, accel, on_output, on_console)
    except states.BootError as e:
        say(f"no saved boot state: {e}; booting from scratch")
        return _run(command, replace(options, boot=True), accel, on_output, on_console)


def _run(command: str, options: Options, accel: str, on_output: Callable[[str], None] | None,
         on_console: Callable[[str], None] | None) -> Result:
    kernel = kernels.get(options.kernel)
    binary = emulator.build()
    tools = guest.tools()
    parts = [guest.base(), tools, *filter(None, [guest.modules(kernel)])]
    insmod = target.module(kernel) if options.module else None
    programs = [target.tool()] if options.module else []
    if options.kernel == sourcekernel.PBLK:
        programs.append(guest.program("guest-pblk"))
    with folder() as place, _flash_in_memory(options, place):
        device = qemu.device_arguments(options, place)
        if options.host_root:
            command = guest.in_host_root(command, kernel)
        own = guest.run_archive(command, pushed=options.push, pulled=options.pull, insmod=insmod,
                                programs=programs, wait_for=NAMESPACE if device else "",
                                shell=qemu.watch_settings(options, 2), below=tools)
        append = f"{qemu.BOOT}{qemu.CLOCK_BOOT[options.clock]} {options.append}".strip()
        # The names of binary, kernel and archives hold the hashes of their contents; folders do not count.
        boot = (binary.parent.name, kernel.key, *(p.name for p in parts), append, str(options.cpus), options.memory,
                *qemu.node_arguments(options))
        clock = qemu.clock_arguments(options, accel)
        # A saved guest has no mark of how long a CPU's turns were, nor of what accesses to memory cost; and stalls
        # begin with the run.
        making = qemu.clock_arguments(replace(options, quantum=Options.quantum, memory_model="", sharing=None, stall=0,
                                              seed=Options.seed), accel)
        key = digest(*boot, *making, *emulator.firmware()) if _may_be_saved(options, own) else ""
        told = [x.replace(str(place), "").replace(str(PROFILES), "")
                for x in (*clock, *device)]
        inputs = digest(key, *boot, own, *told, *qemu.profile_files(options))
        if options.recall and (before := results.recall(inputs)):
            return before

        def booting(own: bytes) -> list[str]:
            write_initrd(place / "initrd", parts, own)
            return qemu.boot_arguments(kernel, place / "initrd", append)

        def make() -> list[str]:
            return [*qemu.machine_arguments(binary, options, making), *booting(b""),
                    "-serial", "chardev:console", "-serial", "null", "-serial", "null"]

        with (states.get(key, make, nodes_of(options), options.boot_timeout, stop.pulse) if key
              else contextlib.nullcontext()) as state:
            results.write_area(place / "area", own if state else b"")
            for name in ("console", "output"):
                (place / name).touch()
            console = process.Tail(place / "console", on_console, state.console if state else "")
            output = process.Tail(place / "output", on_output)
            args = [*qemu.machine_arguments(binary, options, clock),
                    *(state.arguments if state else [*qemu.memory_arguments(options), *booting(own)]),
                    "-chardev", f"file,id=console,path={place}/console", "-serial", "chardev:console",
                    "-chardev", f"file,id=output,path={place}/output", "-serial", "chardev:output",
                    "-object", f"memory-backend-file,id=area,size={results.AREA},share=on,mem-path={place}/area",
                    "-device", "ivshmem-plain,memdev=area,addr=0x10", *device, *qemu.watch_arguments(options),
                    *qemu.sharing_arguments(options),
                    *(qemu.root_arguments() if options.host_root else []),
                    *(x for given in options.qemu for x in shlex.split(given))]
            started = time.monotonic()
            wrong, ended = process.emulate(args, place / "qemu", state, console, output, options)
        seconds = time.monotonic() - started
        left = results.parse_area(place / "area")
        said = (place / "qemu").read_text(errors="replace").strip()
        if state and states.LOAD_FAILED in said:
            states.throw_away(key)
            raise states.BootError(said)
        wrong = results.judge(wrong, left, console.text, said or console.text, ended, options.pull)
        status, files = left or (0, {})
        result = Result(wrong.status if wrong else status, wrong, output.text, console.text, files, seconds, inputs,
                        "virtual time" if options.clock == "virtual" else accel, key or results.BOOTED)
        if options.recall and result.ok:
            results.keep(result)
        return result

# SPDX-License-Identifier: GPL-2.0
"""One run of a command in a guest: QEMU's command line, its life and its end.

All of a run's files are in a folder of its own, removed at the end. In virtual time the guest is a
function of its inputs: no network, no shared folder, fixed seeds and clocks, and the console goes to
a file, which never makes the guest wait.
"""

import base64
import contextlib
import fnmatch
import io
import json
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import emulator, failure, guest, kernels, states, target
from .base import BUILD, ROOT, LabError, digest, need_space, say, write_file

PROFILES = ROOT / "emulator/profiles"
STOCK = "stock"
NONE = "none"
NAMESPACE = "/dev/nvme0n1"
AREA = 256 << 20            # how much a run may bring out; the file is sparse
PAYLOAD = 4096              # guest-area.c knows the same number
BOOT = ("console=ttyS0 loglevel=5 panic=-1 oops=panic kasan.fault=panic panic_on_rcu_stall=1"
        " softlockup_panic=1 softlockup_all_cpu_backtrace=1 hung_task_panic=1"
        " sysctl.kernel.hung_task_timeout_secs=120 sysctl.kernel.hung_task_all_cpu_backtrace=1"
        " sysctl.kernel.panic_on_rcu_stall=1 unknown_nmi_panic panic_print=0x40 sysrq_always_enabled"
        " nokaslr mitigations=off tsc=reliable no_timer_check audit=0 apparmor=0 selinux=0 edd=off"
        " init_on_alloc=0 8250.nr_uarts=3 mce=off nvme_core.multipath=N random.trust_cpu=off"
        # These cost a second of boot and serve nothing here.
        " cryptomgr.notests=1 initcall_blacklist=crypto_kdf108_init,jent_mod_init,init_encrypted,"
        "load_system_certificate_list,selinux_nf_ip_init,bpf_tcp_ca_kfunc_init,bpf_dummy_struct_ops_init,"
        "init_kprobe_trace ipv6.disable=1 cpu_init_udelay=0 rdinit=/init")
# No source of randomness; no byte-wise string instructions, which the clock counts byte by byte.
VIRTUAL_CPU = "max,-rdrand,-rdseed,-erms,-fsrm"
# The TSC runs at 1 GHz there: the kernel need not measure that on each CPU (at HZ=250).
VIRTUAL_BOOT = " lpj=4000000"
# Where vCPUs are threads of a busy host a CPU lost its timer, twice, about when all CPUs leave the periodic tick: RCU
# stalls. The cause is not known. Who keeps that tick has no such moment, and the emulated timer repeats by itself.
WALL_BOOT = " nohz=off highres=off"
# Boots faster than "max" and still has the instructions that checksums use.
WALL_CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+pclmulqdq,+aes,+rdrand,+rdseed"
STOCK_DEVICE = {"logical_block_size": "4096", "physical_block_size": "4096", "zoned": "on",
                "zoned.zone_size": "16M", "zoned.zone_capacity": "16M", "zoned.max_open": "16",
                "zoned.max_active": "16"}
STOCK_SIZE = 2 << 30
SEED = 42
WATCH_MS = 500              # between two lines of the flash of a watched guest, on its clock
STARTED = "lab: run"        # init says so on the console when the command begins
KEPT = BUILD / "kept"
BOOTED = "boot"             # the start of a run that is none of a saved state
_stop = threading.Event()


@dataclass
class Options:
    """What a run needs to know besides its command; the defaults are those of scripts/lab run."""

    kernel: str = kernels.DEFAULT
    clock: str = "wall"
    cpus: int = 2
    memory: str = "2G"
    quantum: int = 1000
    speed: int = 1
    profile: str = ""                       # "": tlc when it exists, else stock
    device: dict[str, str] = field(default_factory=dict)
    media: Path | None = None
    timeout: float = 300                    # seconds of the host's clock for the command
    boot_timeout: float = 600               # and for what comes before it
    silence: float = 600                    # of that, before the console says its first word
    push: Sequence[Path] = ()
    pull: Sequence[str] = ()
    module: bool = True
    append: str = ""
    qemu: Sequence[str] = ()
    host_root: bool = False                 # the command sees the host's root folder, under an overlay in memory
    watch: Path | None = None               # a folder where `lab top` finds what flash and target tell
    boot: bool = False                      # from scratch, where a saved state could be the start
    recall: bool = False                    # virtual time: the same inputs may give what they gave before


@dataclass
class Result:
    """How a run ended."""

    status: int                             # the command's own, or the failure's
    failure: failure.Failure | None
    output: str                             # what the command printed, both streams
    console: str                            # the kernel's messages
    files: dict[str, bytes]                 # what --pull brought out
    seconds: float                          # of the host's wall clock
    inputs: str                             # digest of all that the guest saw
    accel: str
    start: str = BOOTED                     # or the key of the saved state that it began from

    @property
    def ok(self) -> bool:
        return self.failure is None and self.status == 0


def profiles() -> list[str]:
    """Names that --profile takes."""
    return sorted(p.stem for p in PROFILES.glob("*.cfg")) + [STOCK, NONE]


def default_profile() -> str:
    return "tlc" if (PROFILES / "tlc.cfg").exists() else STOCK


def _join(settings: Mapping[str, str]) -> str:
    return ",".join(f"{k}={v}" for k, v in settings.items())


def device_arguments(options: Options, folder: Path) -> list[str]:
    """QEMU's arguments for the flash device."""
    name = options.profile or default_profile()
    if name == NONE:
        return []
    media = options.media.resolve() if options.media else folder / "media"
    controller = {k.removeprefix("nvme0."): v for k, v in options.device.items() if k.startswith("nvme0.")}
    namespace = {k.removeprefix("ns0."): v for k, v in options.device.items() if not k.startswith("nvme0.")}
    args = ["-device", _join({"driver": "nvme", "id": "nvme0", "serial": "mtftl"} | controller)]
    if name == STOCK:
        if not media.exists():
            with open(media, "wb") as f:
                f.truncate(STOCK_SIZE)
        settings = STOCK_DEVICE | namespace
        return [*args, "-drive", f"file={media},id=media,format=raw,if=none,cache=unsafe,discard=unmap",
                "-device", _join({"driver": "nvme-ns", "bus": "nvme0", "nsid": "1", "drive": "media"} | settings)]
    args += ["-readconfig", str(PROFILES / f"{name}.cfg")]
    for key, value in ({"flash.media": str(media)} | namespace).items():
        args += ["-set", f"device.ns0.{key}={value}"]
    return args


def _profile_files(options: Options) -> list[Path]:
    """Files of this project that the device's arguments name."""
    path = PROFILES / f"{options.profile or default_profile()}.cfg"
    return [path] if path.exists() else []


def watch_arguments(options: Options) -> list[str]:
    """QEMU's arguments for the files that `lab top` follows; their serial port is the guest's next.

    It is there unwatched as well: a saved state fits both.
    """
    if not options.watch:
        return ["-serial", "null"]
    options.watch.mkdir(parents=True, exist_ok=True)
    for name in ("flash", "ftl"):
        (options.watch / name).write_bytes(b"")
    stream = [] if (options.profile or default_profile()) in (STOCK, NONE) else [
        "-chardev", f"file,id=flash,path={options.watch.resolve()}/flash",
        "-set", "device.ns0.flash.stream=flash", "-set", f"device.ns0.flash.stream_ms={WATCH_MS}"]
    return [*stream, "-chardev", f"file,id=ftl,path={options.watch.resolve()}/ftl", "-serial", "chardev:ftl"]


def root_arguments() -> list[str]:
    """QEMU's arguments for the host's root folder, read-only."""
    return ["-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=root,mount_tag=hostroot"]


def watch_settings(options: Options, port: int) -> dict[str, str]:
    """What init has to know to let the target's status out by that serial port."""
    return {"LAB_WATCH": f"/dev/ttyS{port}"} if options.watch else {}


def _clock(options: Options, accel: str) -> list[str]:
    """QEMU's arguments for the processors and their clock."""
    if options.clock == "virtual":
        return ["-accel", "tcg,thread=single", "-cpu", VIRTUAL_CPU, "-seed", str(SEED),
                "-rtc", "base=2026-01-01,clock=vm", "-icount",
                f"shift=0,sleep=off,quantum={options.quantum},speed={options.speed}"]
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "qemu64"]
    return ["-accel", "tcg,thread=multi", "-cpu", WALL_CPU]


def machine_arguments(binary: Path, options: Options, accel: str) -> list[str]:
    """QEMU's arguments that every guest has."""
    # The kernel ends the emulator when the lab dies, however that happens.
    return ["setpriv", "--pdeathsig", "KILL", str(binary), *(x for f in emulator.FIRMWARE for x in ("-L", f)),
            "-nodefaults", "-no-user-config", "-display", "none", "-name", "mtftl-lab",
            "-machine", "q35,hpet=off,sata=off,usb=off,smbus=off,vmport=off,smm=off", *_clock(options, accel),
            "-smp", str(options.cpus), "-m", options.memory,
            "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-action", "reboot=shutdown,panic=none"]


def boot_arguments(kernel: kernels.Kernel, initrd: Path, append: str) -> list[str]:
    """QEMU's arguments for a guest that boots."""
    return ["-kernel", str(kernel.image), "-initrd", str(initrd), "-append", append]


def write_initrd(path: Path, parts: Sequence[Path], own: bytes) -> None:
    """The cached archives and the run's own, one behind the other; the kernel unpacks them in order."""
    with open(path, "wb") as f:
        for part in parts:
            with open(part, "rb") as source:
                while os.sendfile(f.fileno(), source.fileno(), None, 1 << 30):
                    pass
        f.write(own)


def stop_all() -> None:
    """End the guests of all threads; their runs unwind with KeyboardInterrupt."""
    _stop.set()


class _Tail:
    """Follows a growing file; before is what was said before it."""

    def __init__(self, path: Path, sink: Callable[[str], None] | None, before: str = "") -> None:
        self.path, self.sink, self.text, self._at = path, sink, before, 0
        if before and sink:
            sink(before)

    def poll(self) -> bool:
        """Read what is new; true if there was something."""
        with open(self.path, "rb") as f:
            f.seek(self._at)
            data = f.read()
        self._at += len(data)
        new = data.decode(errors="replace")
        self.text += new
        if new and self.sink:
            self.sink(new)
        return bool(new)


class _Qmp:
    """QEMU's control socket: just enough to press keys and inject an NMI."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sock.settimeout(5)
        self.command("qmp_capabilities")

    def command(self, name: str, **arguments: object) -> None:
        self._sock.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        with contextlib.suppress(TimeoutError):
            self._sock.recv(65536)

    def sysrq(self, key: str) -> None:
        keys = [{"type": "qcode", "data": k} for k in ("alt", "sysrq", key)]
        self.command("send-key", keys=keys)


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


def _hang_or_timeout(qmp_socket: socket.socket, child: subprocess.Popen[bytes], console: _Tail,
                     seconds: float, what: str) -> failure.Failure:
    """The time is up: ask the kernel where it is, and tell a slow command from a dead guest."""
    before = len(console.text)

    def wait(limit: float, quiet: float) -> None:
        """Until the guest ends, or has said nothing for so long, or the limit."""
        end = time.monotonic() + limit
        silent = time.monotonic() + quiet
        while time.monotonic() < min(silent, end) and child.poll() is None:
            if console.poll():
                silent = time.monotonic() + quiet
            time.sleep(0.05)

    detail = f"{what} had {seconds:.0f} s"
    alive = False
    # The kernel's own watchdog may end the guest meanwhile; then it has said why.
    with contextlib.suppress(OSError):
        qmp = _Qmp(qmp_socket)
        # At the level that guests boot with, the console would name no task.
        for key in ("7", "w", "l"):
            qmp.sysrq(key)
            wait(3, 1)
        alive = "sysrq: " in console.text[before:]
        if not alive:
            qmp.command("inject-nmi")
            wait(30, 30)    # the kernel panics, which ends the guest once each CPU is shown
    console.poll()      # what a panic in an NMI printed comes out right before the end
    lines = tuple(console.text[before:].splitlines()[:200])
    return failure.Failure("timeout" if alive else "hang", lines,
                           detail if alive else f"{detail}; it answers no key, what the kernel said last follows")


def _parse_area(path: Path) -> tuple[int, dict[str, bytes]] | None:
    """Status and files that guest-exit left, if it did."""
    with open(path, "rb") as f:
        magic, status, length = struct.unpack("<8sQQ", f.read(24))
        if magic != b"MTFTLEND":
            return None
        if length == 2**64 - 1:
            raise LabError(f"the pulled files are larger than {AREA >> 20} MiB")
        f.seek(PAYLOAD)
        data = f.read(length)
    files: dict[str, bytes] = {}
    if not data:
        return status, files
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content:
                files[member.name.lstrip("/")] = content.read()
    return status, files


def check(options: Options) -> None:
    """Refuse what cannot work before anything is built."""
    if options.clock not in ("wall", "virtual"):
        raise LabError(f"no clock '{options.clock}': there are wall, virtual")
    if options.host_root and options.clock == "virtual":
        raise LabError("the host's root folder is no input that virtual time could repeat: take --clock wall")
    if options.profile and options.profile not in profiles():
        raise LabError(f"no profile '{options.profile}': there are {', '.join(profiles())}")
    kernels.check(options.kernel)
    for path in options.push:
        if not path.exists():
            raise LabError(f"--push {path}: there is no such file")
    need_memory(options.memory)
    need_space(BUILD, 1, "a run")


def recall(inputs: str) -> Result | None:
    """What a run of the same inputs gave, if it was kept."""
    path = KEPT / inputs
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    files = {name: base64.b64decode(data) for name, data in kept.pop("files").items()}
    return Result(failure=None, files=files, inputs=inputs, accel="virtual time", **kept)


def _keep(result: Result) -> None:
    files = {name: base64.b64encode(data).decode() for name, data in result.files.items()}
    write_file(KEPT / result.inputs, json.dumps({"status": result.status, "output": result.output, "files": files,
                                                 "console": result.console, "seconds": result.seconds,
                                                 "start": result.start}))


def _may_be_saved(options: Options, own: bytes) -> bool:
    """Can this run begin from a saved state? A user's arguments for QEMU may ask for another machine."""
    return not (options.boot or options.host_root or options.qemu or options.clock == "wall"
                or len(own) > AREA - PAYLOAD)


def _write_area(path: Path, own: bytes) -> None:
    """The memory that guest-area.c knows, with the run's archive for a guest that begins from a saved state."""
    with open(path, "wb") as f:
        f.truncate(AREA)
        if own:
            f.write(struct.pack("<8sQQ", b"MTFTLRUN", 0, len(own)))
            f.seek(PAYLOAD)
            f.write(own)


def _pulse() -> None:
    if _stop.is_set():
        raise KeyboardInterrupt


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
    tool = target.tool() if options.module else None
    with folder() as place:
        device = device_arguments(options, place)
        if options.host_root:
            command = guest.in_host_root(command, kernel)
        own = guest.run_archive(command, pushed=options.push, pulled=options.pull, insmod=insmod,
                                programs=[tool] if tool else [], wait_for=NAMESPACE if device else "",
                                shell=watch_settings(options, 2), below=tools)
        append = f"{BOOT}{VIRTUAL_BOOT if options.clock == 'virtual' else WALL_BOOT} {options.append}".strip()
        # The names of binary, kernel and archives hold the hashes of their contents; folders do not count.
        boot = (binary.parent.name, kernel.key, *(p.name for p in parts), append, str(options.cpus), options.memory)
        # A saved guest has no mark of how long a CPU's turns were, and may go on with others.
        making = replace(options, quantum=Options.quantum)
        key = digest(*boot, *_clock(making, accel), *emulator.firmware()) if _may_be_saved(options, own) else ""
        told = [x.replace(str(place), "").replace(str(PROFILES), "") for x in (*_clock(options, accel), *device)]
        inputs = digest(key, *boot, own, *told, *_profile_files(options))
        if options.recall and (before := recall(inputs)):
            return before

        def booting(own: bytes) -> list[str]:
            write_initrd(place / "initrd", parts, own)
            return boot_arguments(kernel, place / "initrd", append)

        def make() -> list[str]:
            return [*machine_arguments(binary, making, accel), *booting(b""),
                    "-serial", "chardev:console", "-serial", "null", "-serial", "null"]

        saved = states.get(key, make, options.memory, options.boot_timeout, _pulse) if key else contextlib.nullcontext()
        with saved as state:
            _write_area(place / "area", own if state else b"")
            for name in ("console", "output"):
                (place / name).touch()
            console = _Tail(place / "console", on_console, state.console if state else "")
            output = _Tail(place / "output", on_output)
            args = [*machine_arguments(binary, options, accel), *(state.arguments if state else booting(own)),
                    "-chardev", f"file,id=console,path={place}/console", "-serial", "chardev:console",
                    "-chardev", f"file,id=output,path={place}/output", "-serial", "chardev:output",
                    "-object", f"memory-backend-file,id=area,size={AREA},share=on,mem-path={place}/area",
                    "-device", "ivshmem-plain,memdev=area,addr=0x10", *device, *watch_arguments(options),
                    *(root_arguments() if options.host_root else []),
                    *(x for given in options.qemu for x in shlex.split(given))]
            started = time.monotonic()
            wrong, ended = _emulate(args, place / "qemu", state, console, output, options)
        seconds = time.monotonic() - started
        left = _parse_area(place / "area")
        said = (place / "qemu").read_text(errors="replace").strip()
        if state and states.LOAD_FAILED in said:
            states.throw_away(key)
            raise states.BootError(said)
        wrong = _judge(wrong, left, console.text, said or console.text, ended, options.pull)
        status, files = left or (0, {})
        result = Result(wrong.status if wrong else status, wrong, output.text, console.text, files, seconds, inputs,
                        "virtual time" if options.clock == "virtual" else accel, key or BOOTED)
        if options.recall and result.ok:
            _keep(result)
        return result


def _emulate(args: Sequence[str], says: Path, state: states.State | None, console: _Tail, output: _Tail,
             options: Options) -> tuple[failure.Failure | None, int]:
    """Run QEMU until it ends: what was wrong with its guest, as far as seen from outside, and its exit status."""
    ours, theirs = socket.socketpair()
    with ours:
        if state:
            ours.sendall(state.commands)
        with theirs, open(says, "wb") as said:
            child = subprocess.Popen(
                [*args, "-chardev", f"socket,id=qmp,fd={theirs.fileno()}", "-mon", "chardev=qmp,mode=control"],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                pass_fds=[theirs.fileno(), *(state.files if state else [])])
        try:
            wrong = _watch(child, ours, console, output, options)
        finally:
            if child.poll() is None:
                child.kill()
            ended = child.wait()
    console.poll()
    output.poll()
    return wrong, ended


def _watch(child: subprocess.Popen[bytes], control: socket.socket, console: _Tail, output: _Tail,
           options: Options) -> failure.Failure | None:
    """Pass on what the guest says until it ends, or until its time is up: first to boot, then to run."""
    running = False
    limit = options.boot_timeout
    end = time.monotonic() + limit
    silent = time.monotonic() + options.silence
    while child.poll() is None:
        busy = [console.poll(), output.poll()]
        _pulse()
        if not running and STARTED in console.text:
            running, limit = True, options.timeout
            end = time.monotonic() + limit
        if not console.text and time.monotonic() > silent:
            return failure.Failure("hang", detail=f"not a word from it in {options.silence:.0f} s")
        if time.monotonic() > end:
            return _hang_or_timeout(control, child, console, limit, "the command" if running else "the boot")
        time.sleep(0.005 if any(busy) else 0.02)
    return None


def _judge(overdue: failure.Failure | None, left: tuple[int, dict[str, bytes]] | None, console: str, said: str,
           emulator_status: int, pulled: Sequence[str]) -> failure.Failure | None:
    """Which failure a run ended with, if any: the kernel's own report says more than a time-out."""
    reported = failure.find(console)
    if overdue and not (reported and overdue.kind == "timeout"):
        return overdue
    if reported:
        return reported
    if not left:
        kind = "qemu" if emulator_status else "lost"
        return failure.Failure(kind, tuple(said.splitlines()[-20:]), f"exit status {emulator_status}")
    status, files = left
    absent = [p for p in pulled if not any(_matches(p, name) for name in files)]
    return failure.Failure("missing", detail=" ".join(absent)) if absent and not status else None


def _matches(pattern: str, name: str) -> bool:
    """Does a pulled file come from this --pull pattern: the file itself, or in a folder of that name?"""
    pattern = pattern.strip("/")
    return fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, pattern + "/*")


def need_memory(wanted: str) -> None:
    """Say before the guest starts that the host cannot hold it."""
    units = {"M": 20, "G": 30}
    if not wanted[:-1].isdigit() or wanted[-1:] not in units:
        raise LabError(f"--memory {wanted}: give a number with M or G")
    size = int(wanted[:-1]) << units[wanted[-1]]
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:") and int(line.split()[1]) * 1024 < size // 2:
            raise LabError(f"the guest is given {wanted}, the host has {int(line.split()[1]) >> 10} MiB available")


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def end_cleanly_on_signals() -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C: guests end, folders go."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def write_pulled(files: dict[str, bytes], folder: Path) -> None:
    """Put pulled files into a folder, each as a whole."""
    for name, data in files.items():
        place = folder / name
        if not place.resolve().is_relative_to(folder.resolve()):
            print(f"lab: not written, it leaves the folder: {name}", file=sys.stderr)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(place.name + ".part")
        part.write_bytes(data)
        part.rename(place)

# SPDX-License-Identifier: GPL-2.0
"""The command line of QEMU: machine, clock, boot, flash device, and what goes beside them.

In virtual time the guest is a function of its inputs: no network, no shared folder, fixed seeds and clocks.
"""

import configparser
import re
import shlex
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..build import emulator, kernels
from ..util.base import write_file
from . import states
from .options import NONE, PROFILES, STOCK, Options, nodes_of, profile_of
from .outcome import AREA

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
# In virtual time the TSC runs at 1 GHz: the kernel need not measure that on each CPU (at HZ=250).
# Where vCPUs are threads of a busy host a CPU lost its timer, twice, about when all CPUs leave the periodic tick: RCU
# stalls. The cause is not known. A CPU that keeps that tick has no such moment, and the emulated timer repeats by
# itself.
CLOCK_BOOT = {"virtual": " lpj=4000000", "wall": " nohz=off highres=off"}
# Boots faster than "max" and still has the instructions that checksums use.
WALL_CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+pclmulqdq,+aes,+rdrand,+rdseed"
STOCK_DEVICE = {"logical_block_size": "4096", "physical_block_size": "4096", "zoned": "on",
                "zoned.zone_size": "16M", "zoned.zone_capacity": "16M", "zoned.max_open": "16",
                "zoned.max_active": "16"}
STOCK_SIZE = 2 << 30
RUN = "run"             # in the folder of --watch: the name of the run whose streams are there


def _join(settings: Mapping[str, str]) -> str:
    return ",".join(f"{k}={v}" for k, v in settings.items())


def _set_of(options: Options, device: str) -> dict[str, str]:
    """What the user sets of the drive's controller or subsystem."""
    return {k.removeprefix(f"{device}."): v for k, v in options.device.items() if k.startswith(f"{device}.")}


def _namespace(options: Options) -> dict[str, str]:
    """What the user sets of the drive's namespace."""
    return {k.removeprefix("ns0."): v for k, v in options.device.items() if not k.startswith(("nvme0.", "subsys0."))}


def media_of(options: Options, folder: Path, drive: int = 0) -> Path:
    """The file of a drive's content: the user's, or one in the run's folder."""
    first = options.media.resolve() if options.media else folder / "media"
    return first.with_name(f"{first.name}{drive or ''}")


def make_media(options: Options, folder: Path) -> None:
    """QEMU's own drive needs its file before it starts; the flash device makes its own."""
    media = media_of(options, folder)
    if profile_of(options) == STOCK and not (media.exists() and media.stat().st_size):
        with open(media, "wb") as f:
            f.truncate(STOCK_SIZE)


def _controller(options: Options, drive: int) -> list[str]:
    """QEMU's arguments for what a drive's namespace is in."""
    subsystem, controller = _set_of(options, "subsys0"), _set_of(options, "nvme0")
    args = []
    if subsystem:
        args += ["-device", _join({"driver": "nvme-subsys", "id": f"subsys{drive}"} | subsystem)]
        controller = {"subsys": f"subsys{drive}"} | controller
    named = {"driver": "nvme", "id": f"nvme{drive}", "serial": f"mtftl{drive or ''}"}
    return [*args, "-device", _join(named | controller)]


def profile_settings(name: str) -> dict[str, str]:
    """The properties of a profile's namespace."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(PROFILES / f"{name}.cfg")
    return {key: text.strip('"') for key, text in parser['device "ns0"'].items()}


def _further_drive(options: Options, folder: Path, drive: int) -> list[str]:
    """QEMU's arguments for another drive like the first one: QEMU reads a profile for one device only."""
    own = {"id": f"ns{drive}", "bus": f"nvme{drive}", "flash.media": str(media_of(options, folder, drive))}
    return [*_controller(options, drive), "-device",
            _join(profile_settings(profile_of(options)) | own | _namespace(options))]


def device_arguments(options: Options, folder: Path) -> list[str]:
    """QEMU's arguments for the flash devices."""
    name = profile_of(options)
    if name == NONE:
        return []
    media, namespace = media_of(options, folder), _namespace(options)
    args = _controller(options, 0)
    if name == STOCK:
        settings = STOCK_DEVICE | namespace
        return [*args, "-drive", f"file={media},id=media,format=raw,if=none,cache=unsafe,discard=unmap",
                "-device", _join({"driver": "nvme-ns", "bus": "nvme0", "nsid": "1", "drive": "media"} | settings)]
    args += ["-readconfig", str(PROFILES / f"{name}.cfg")]
    for key, value in ({"flash.media": str(media)} | namespace).items():
        args += ["-set", f"device.ns0.{key}={value}"]
    return [*args, *(x for drive in range(1, options.drives) for x in _further_drive(options, folder, drive))]


def flash_size(options: Options) -> int:
    """Bytes that the drives may come to hold."""
    given = _namespace(options).get("flash.size")
    text = f'flash.size = "{given}"' if given else "".join(p.read_text() for p in profile_files(options))
    found = re.search(r'^ *flash\.size = "(\d+)([KMGT]?)"', text, re.M)
    one = int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[found[2]] if found else STOCK_SIZE
    return options.drives * one


def profile_files(options: Options) -> list[Path]:
    """Files of this project that the device's arguments name."""
    path = PROFILES / f"{profile_of(options)}.cfg"
    return [path] if path.exists() else []


def watch_arguments(options: Options) -> list[str]:
    """QEMU's arguments for the files that `lab top` follows; their serial port is the guest's next.

    It is there unwatched as well: a saved state fits both.
    """
    if not options.watch:
        return ["-serial", "null"]
    options.watch.mkdir(parents=True, exist_ok=True)
    write_file(options.watch / RUN, f"{uuid.uuid4()}\n")
    for name in ("flash", "ftl"):
        (options.watch / name).write_bytes(b"")
    stream = [] if profile_of(options) in (STOCK, NONE) else [
        "-chardev", f"file,id=flash,path={options.watch.resolve()}/flash",
        "-set", "device.ns0.flash.stream=flash", "-set", f"device.ns0.flash.stream_ms={options.watch_every}"]
    return [*stream, "-chardev", f"file,id=ftl,path={options.watch.resolve()}/ftl", "-serial", "chardev:ftl"]


def sharing_arguments(options: Options) -> list[str]:
    """QEMU's arguments for the port by which the guest says when to count what is shared."""
    return ["-device", "isa-debug-sharing"] if options.sharing else []


def root_arguments() -> list[str]:
    """QEMU's arguments for the host's root folder, read-only."""
    return ["-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=root,mount_tag=hostroot"]


def watch_settings(options: Options, port: int) -> dict[str, str]:
    """What init has to know to let the target's status out by that serial port."""
    return {"LAB_WATCH": f"/dev/ttyS{port} {options.watch_every / 1000:g}"} if options.watch else {}


def clock_arguments(options: Options, accel: str) -> list[str]:
    """QEMU's arguments for the processors and their clock."""
    if options.clock == "virtual":
        return ["-accel", "tcg,thread=single", "-cpu", VIRTUAL_CPU, "-seed", str(options.seed),
                "-rtc", "base=2026-01-01,clock=vm", "-icount",
                f"shift=0,sleep=off,quantum={options.quantum},speed={options.speed}"
                + (f",memory={options.memory_model}" if options.memory_model else "")
                + (f",sharing={options.sharing.resolve()}" if options.sharing else "")
                + (f",stall={options.stall},stall-every={options.stall_every}" if options.stall else "")
                + (f",schedule={options.schedule},period={options.period}" if options.schedule else "")
                + (f",changes={options.changes}" if options.changes else "")]
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "qemu64"]
    return ["-accel", "tcg,thread=multi", "-cpu", WALL_CPU]


def node_arguments(options: Options) -> list[str]:
    """QEMU's arguments for a guest with several nodes, which share its processors; their memory is others'."""
    names = states.memory_names(nodes_of(options))
    each = options.cpus // len(names)
    return ["-smp", f"{options.cpus},sockets={len(names)}", *(x for i, name in enumerate(names) for x in (
        "-numa", f"node,nodeid={i},cpus={i * each}-{(i + 1) * each - 1},memdev={name}"))] if len(names) > 1 else []


def memory_arguments(options: Options) -> list[str]:
    """QEMU's arguments for the memory of nodes that is not in a file; of one node it has by itself."""
    sizes = nodes_of(options)
    return [x for name, size in zip(states.memory_names(sizes), sizes) if len(sizes) > 1
            for x in ("-object", f"memory-backend-ram,id={name},size={size}")]


def started_by_lab(binary: Path) -> list[str]:
    """The beginning of QEMU's command line: it finds its firmware, and adds nothing of its own to the machine."""
    # The kernel ends the emulator when the lab dies, however that happens.
    return ["setpriv", "--pdeathsig", "KILL", str(binary), *(x for f in emulator.FIRMWARE for x in ("-L", f)),
            "-nodefaults", "-no-user-config", "-display", "none", "-name", "mtftl-lab"]


def machine_arguments(binary: Path, options: Options, clock: Sequence[str]) -> list[str]:
    """QEMU's arguments that every guest has, for a clock of clock_arguments()."""
    return [*started_by_lab(binary), "-machine", "q35,hpet=off,sata=off,usb=off,smbus=off,vmport=off,smm=off", *clock,
            *(node_arguments(options) or ["-smp", str(options.cpus)]), "-m", options.memory,
            "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-action", "reboot=shutdown,panic=none"]


def run_arguments(options: Options, folder: Path) -> list[str]:
    """QEMU's arguments for what a run has besides its machine: consoles, results, the flash device, a user's own."""
    return ["-chardev", f"file,id=console,path={folder}/console", "-serial", "chardev:console",
            "-chardev", f"file,id=output,path={folder}/output", "-serial", "chardev:output",
            "-object", f"memory-backend-file,id=area,size={AREA},share=on,mem-path={folder}/area",
            "-device", "ivshmem-plain,memdev=area,addr=0x10", *device_arguments(options, folder),
            *watch_arguments(options), *sharing_arguments(options),
            *(root_arguments() if options.host_root else []),
            *(x for given in options.qemu for x in shlex.split(given))]


def boot_arguments(kernel: kernels.Kernel, initrd: Path, append: str) -> list[str]:
    """QEMU's arguments for a guest that boots."""
    return ["-kernel", str(kernel.image), "-initrd", str(initrd), "-append", append]

# SPDX-License-Identifier: GPL-2.0
"""A Debian with systemd whose root file system is on mtftl, booted again and again: `scripts/lab boots`.

boot/system makes the system of a clean Debian 13 (packages/make-root) and the packages, as a user installs them. It
boots in the emulator, one QEMU a boot. The lab stands for the boot loader, and /boot for its disk. A power cut kills
QEMU, whose drives then lose what a drive loses. At each boot the guest runs boot/boot-test, which reads all that was
durable before, in the root file system and in that of a second drive. Then it writes more.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..build import debian, emulator, target
from ..run import accel, machine, qemu
from ..run.options import PROFILES, Options
from ..run.process import Tail, worked
from ..util.base import (
    BUILD,
    ROOT,
    LabError,
    cores,
    digest,
    digest_files,
    fresh_folder,
    lock,
    logged,
    output,
    say,
    write_file,
)
from .torture import commit

RESULTS = ROOT / "results/boots"
WORK = BUILD / "boots"
TESTS = ROOT / "target/tests"
RELEASE = "trixie"
PATIENCE = 1200             # seconds that a boot may take on a busy host
FOLDERS = "/content", "/srv/content"        # on the root file system, and on the second drive's
UUIDS = {name: "-".join(str(i) * n for n in (8, 4, 4, 4, 12)) for i, name in enumerate(("root", "data", "twin"), 1)}
# 4 MiB zones on four dies.
SMALL = {"zoned.zone_size": "4M", "zoned.zone_capacity": "4M", "zoned.max_open": "6", "zoned.max_active": "6",
         "flash.channels": "2", "flash.dies": "2", "flash.planes": "1", "flash.page": "16K", "flash.program_pages": "2",
         "flash.block_pages": "64", "flash.buffer": "1M"}
DRIVES = {"root": {"flash.size": "2G"}, "data": SMALL | {"flash.size": "128M"},
          "twin": SMALL | {"flash.size": "64M"}, "copy": SMALL | {"flash.size": "64M"}}
WORDS = ("ro console=ttyS0 panic=-1 oops=panic mitigations=off nokaslr tsc=reliable no_timer_check audit=0 apparmor=0"
         " random.trust_cpu=on ipv6.disable=1 udev.event_timeout=600" + qemu.CLOCK_BOOT["wall"])
APPEND = f"root=/dev/mapper/root {WORDS}"
INSTALL = r"""
set -e
drive() { # name: the drive of that serial number
	local at=$(grep -lx "$1 *" /sys/block/nvme*n1/device/serial)
	at=${at#/sys/block/}
	echo /dev/${at%%/*}
}
fill() { # folder: what boot-test looks at
	mkdir -p $1
	(cd $1; head -c 512K /dev/urandom >0; sha256sum 0 >sums; echo 0 >count)
}
for name in root data; do
	mtftl format --force --uuid $(uuid $name) $(drive $name) >/dev/null
	mtftl open $(drive $name) $name
	mkfs.ext4 -q /dev/mapper/$name
	mkdir /mnt/$name
	mount /dev/mapper/$name /mnt/$name
done
pushed=$PWD
cd /mnt/root
tar -x -f $system/root.tar
install $pushed/boot-test usr/local/sbin
install -m 644 $pushed/boot-test.service etc/systemd/system
ln -sf ../boot-test.service etc/systemd/system/multi-user.target.wants
cd /
fill /mnt/root/content
fill /mnt/data/content
umount /mnt/root /mnt/data
mtftl close root
mtftl close data
mtftl format --force --uuid $(uuid twin) $(drive twin) >/dev/null
"""


def clean_root(release: str = RELEASE) -> Path:
    """A clean Debian of that release, with all that the packages need; made once, which takes root and a network."""
    root = BUILD / "roots" / release
    with lock(f"root-{release}"):
        if not root.with_suffix(".done").exists():
            if os.geteuid():
                raise LabError(f"no clean {release} in {root.parent}, expected to run as root, which can make one")
            say(f"installing a clean {release}")
            debian.ensure("roots")
            logged([TESTS / "packages/make-root", release, BUILD], root.with_suffix(".log"))
    return root


def make_system(root: Path, folder: Path, program: str = "system", typed: str = "") -> Path:
    """What boot/PROGRAM makes of the packages: archives, kernels and what they boot with. A folder to work in is given.

    It is made once for the same sources, and for the same commands that it is to type.
    """
    sources = folder / "sources"
    output([target.SOURCE / "packaging/source-tree", sources])
    (sources / "typed").write_text(typed)
    files = {str(p.relative_to(sources)): p.read_bytes() for p in sources.rglob("*") if p.is_file()}
    makers = TESTS / "boot/common", TESTS / "boot" / program, TESTS / "packages/in-root"
    of = root.name, str(root.with_suffix(".done").stat().st_mtime_ns)
    made = BUILD / "roots" / f"{program}-{digest(digest_files(files), *(p.read_bytes() for p in makers), *of)}"
    with lock(f"{program}-{root.name}"):
        if not made.exists():
            say(f"making a system with the packages in a clean {root.name}")
            with fresh_folder(made) as part:
                output([TESTS / "packages/in-root", root, sources, TESTS / "boot" / program, part])
    return made


@dataclass
class Heard:
    """What came of a QEMU."""

    said: str                       # on the second serial port
    console: str
    status: int | None              # None: it was killed
    took: tuple[float, float]       # seconds until the guest was ready, and of them those that the emulator worked


def listen(arguments: Sequence[str], folder: Path, name: str, cut_after: int = 0) -> Heard:
    """Run QEMU until the guest ends, or has made so many numbers safe."""
    console, heard = (folder / f"{kind}-{name}" for kind in ("console", "output"))
    heard.touch()
    said, took = Tail(heard, None), (0.0, 0.0)
    ports = ["-serial", f"file:{console}", "-serial", f"file:{heard}"]
    with open(folder / f"qemu-{name}", "wb") as errors:
        child = subprocess.Popen([*arguments, *ports], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    began = time.monotonic()
    try:
        while child.poll() is None and time.monotonic() < began + PATIENCE:
            said.poll()
            if not took[0] and "@ ready " in said.text:
                took = time.monotonic() - began, worked(child)
            if cut_after and said.text.count(" safe ") >= cut_after:
                break
            time.sleep(0.02)
    finally:
        ended = child.poll()
        child.kill()
        child.wait()
    said.poll()
    return Heard(said.text, console.read_text(errors="replace"), ended, took)


def boot_arguments(binary: Path, options: Options, system: Path, append: str, kernel: int = 1) -> list[str]:
    """QEMU's arguments for a system's machine, and for a boot of one of its kernels."""
    return [*qemu.machine_arguments(binary, options, qemu.clock_arguments(options, accel.choose())),
            "-kernel", str(system / f"vmlinuz-{kernel}"), "-initrd", str(system / f"initrd-{kernel}"),
            "-append", append]


@dataclass
class Boot:
    """One boot, and what it found."""

    number: int
    kernel: str
    end: str                    # cut, or what the guest was asked to do before it reboots
    seconds: float              # of the host, until all was read
    processor_seconds: float    # of them, those that the emulator worked
    newer: list[int]            # units newer than the checkpoint, of each drive that was not closed cleanly
    files: int                  # of 512 KiB in each folder, all right
    found: dict[str, int]       # the last number in each folder; all up to `safe` of the boot before had to be there
    safe: dict[str, int]        # the last number that was durable before the end
    said: list[str]             # what the guest said besides


@dataclass
class Machine:
    """Four drives, and what the lab knows of the system on them."""

    folder: Path
    system: Path
    binary: Path
    boots: list[Boot] = field(default_factory=list)

    @property
    def options(self) -> Options:
        return Options(cpus=1, memory="1G", media=self.folder / "root",
                       device={"nvme0.serial": "root"} | DRIVES["root"])

    def drives(self) -> list[str]:
        """QEMU's arguments for all drives but that of the root file system."""
        text = (PROFILES / "tlc.cfg").read_text()
        args = []
        for i, (name, settings) in enumerate(DRIVES.items()):
            if name == "root":
                continue
            profile = self.folder / f"{name}.cfg"
            profile.write_text(text.replace('"ns0"', f'"ns{i}"').replace('"nvme0"', f'"nvme{i}"'))
            args += ["-device", f"nvme,id=nvme{i},serial={name}", "-readconfig", str(profile)]
            for key, value in ({"flash.media": str(self.folder / name)} | settings).items():
                args += ["-set", f"device.ns{i}.{key}={value}"]
        return args

    def install(self) -> None:
        """Move the system to its drive, and prepare the others."""
        uuids = "".join(f"{name}) echo {uuid};; " for name, uuid in UUIDS.items())
        options = self.options
        options.qemu, options.host_root, options.timeout = self.drives(), True, PATIENCE
        options.push = [TESTS / "boot/boot-test", TESTS / "boot/boot-test.service"]
        done = machine.run(f"system={self.system}; uuid() {{ case $1 in {uuids}esac; }}\n{INSTALL}", options,
                           accel=accel.choose())
        if not done.ok:
            raise LabError(f"the system was not installed: {done.failure or done.status}\n{done.output}")
        shutil.copy(self.folder / "twin", self.folder / "copy")

    def boot(self, asked: str, kernel: int, cut_after: int = 0) -> Boot:
        """Boot once, until the guest ends or has made so many numbers safe; whether all was there that was durable."""
        number = len(self.boots) + 1
        update = ["-drive", f"file={self.system}/update.tar,format=raw,if=virtio,readonly=on"]
        arguments = [
            *boot_arguments(self.binary, self.options, self.system, f"{APPEND} boot-test={asked}", kernel),
            *qemu.device_arguments(self.options, self.folder), *self.drives(), *(update if asked == "update" else [])]
        heard = listen(arguments, self.folder, str(number), cut_after)
        if f"@ ready for {asked}\n" not in heard.said or (heard.status != 0 and not cut_after):
            raise LabError(f"boot {number} ({asked}) did not end as it should\n{heard.said}\n{heard.console[-4000:]}")
        # The kernel says so if it did not find a clean stop.
        newer = [int(n) for n in re.findall(r"mount: (\d+) units newer", heard.console)]
        boot = self._judge(asked, heard.took, newer,
                           [line[2:] for line in heard.said.splitlines() if line.startswith("@ ")])
        self.boots.append(boot)
        return boot

    def _judge(self, asked: str, took: tuple[float, float], newer: list[int], said: list[str]) -> Boot:
        """Whether all is there that was durable, in both file systems, and whether both drives were closed cleanly."""
        before = self.boots[-1] if self.boots else None
        number = len(self.boots) + 1
        what = f"boot {number} ({asked}): "
        if before and before.end == "cut":
            if len(newer) != 2 or min(newer) == 0:
                raise LabError(f"{what}{newer} units newer after a cut, expected some on two drives")
        elif newer:
            raise LabError(f"{what}{newer} units newer, expected two drives that were closed\n" + "\n".join(said))
        kernel = said.pop(0).removeprefix("kernel ")
        rest = [line for line in said if " safe " not in line]
        found, safe = {}, {}
        for folder in FOLDERS:
            files, counted = rest.pop(0), rest.pop(0)
            last = re.fullmatch(rf"{folder} counted (\d+)", counted)
            least = before.safe[folder] if before else 0
            if files != f"{folder} has {number} files" or not last or not least <= int(last[1]) <= least + 1:
                raise LabError(f"{what}expected {number} files and to have counted to {least}\n" + "\n".join(said))
            found[folder] = int(last[1])
            safe[folder] = max([found[folder], *(int(line.split()[-1]) for line in said
                                                 if line.startswith(f"{folder} safe "))])
        return Boot(number, kernel, asked, round(took[0], 1), round(took[1], 1), newer, number, found, safe, rest[:-1])

    def go(self, ends: Sequence[tuple[str, int]]) -> Iterator[Boot]:
        """Boot as planned, once the system is installed."""
        kernels = (self.system / "kernels").read_text().split()
        kernel = 1
        for end, cut_after in ends:
            boot = self.boot(end, kernel, cut_after)
            if boot.kernel != kernels[kernel - 1]:
                raise LabError(f"boot {boot.number}: kernel {boot.kernel}, expected {kernels[kernel - 1]}")
            yield boot
            kernel = 2 if end == "update" else kernel


def plan(cuts: int, reboots: int, seed: int) -> list[tuple[str, int]]:
    """How each boot ends, and after how many durable numbers if by a cut. A boot that only looks comes after them.

    The first reboot looks at what the boot made of the tab; one in the middle goes to another kernel.
    """
    chance = random.Random(seed)
    middle = ["cut"] * cuts + ["reboot"] * (reboots - 2)
    chance.shuffle(middle)
    middle.insert(len(middle) // 2, "update")
    return [(end, chance.randrange(5, 60) if end == "cut" else 0) for end in ["first", *middle, "last"]]


ENDS = {"first": "a reboot", "reboot": "a reboot", "update": "a reboot into another kernel", "cut": "a power cut"}


def table(results: Mapping[str, Any]) -> str:
    """The boots as Markdown."""
    boots = results["boots"]
    cuts = sum(boot["end"] == "cut" for boot in boots)
    of = results["commit"].removesuffix("+changes")
    lines = [f"Boots that a power cut ended: {cuts}. Boots that a reboot ended: {len(boots) - 1 - cuts}, one of them",
             "into another kernel. No boot needed a login. Each found all files, and no file was wrong.", "",
             f"Commit {results['commit'].replace(of, of[:12])}, seed {results['seed']}. On {results['cores']} shared "
             f"cores ({results['accel']}), the installation took {results['installed']:.0f} s.", "",
             "| boot | after | kernel | files | root: durable, found | data: durable, found | newer units | seconds |"
             " processor seconds |", "|" + "---|" * 9]
    for before, boot in zip([None, *boots], boots):
        after = ENDS[before["end"]] if before else "the installation"
        durable = before["safe"] if before else dict.fromkeys(FOLDERS, 0)
        numbers = " | ".join(f"{durable[folder]}, {boot['found'][folder]}" for folder in FOLDERS)
        newer = " and ".join(map(str, boot["newer"])) or "closed cleanly"
        lines.append(f"| {boot['number']} | {after} | {boot['kernel']} | {2 * boot['files']} | {numbers} | {newer} | "
                     f"{boot['seconds']:.0f} | {boot['processor_seconds']:.0f} |")
    return "\n".join(lines)


def draw(results: Mapping[str, Any], path: Path) -> None:
    """What each boot took, by how the one before had ended."""
    from ..exp import figures
    boots = results["boots"]
    came = [ENDS[boot["end"]] for boot in boots[:-1]]
    drawing, (axes,) = figures.panels(1)
    for number, after in enumerate(dict.fromkeys(came)):
        of = [boot for boot, end in zip(boots[1:], came) if end == after]
        axes.bar([boot["number"] for boot in of], [boot["processor_seconds"] for boot in of], label=f"after {after}",
                 color=figures.COLOURS[number])
    axes.set_xlabel("boot")
    axes.set_ylabel("processor seconds of the host")
    axes.set_xticks(range(2, len(boots) + 1, 2))
    # Below the panel, where it hides nothing.
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
    figures.save(drawing, path)


def update_page(text: str, results: Path) -> str:
    """results/boots/README.md with the table as the results are."""
    path = results / "boots/boots.json"
    middle = f"\n{table(json.loads(path.read_text()))}\n" if path.exists() else ""
    return re.sub(r"(<!-- boots -->)\n.*?(<!-- end of boots -->)", lambda m: f"{m[1]}\n{middle}\n{m[2]}", text,
                  flags=re.S)


def _boots(args: argparse.Namespace) -> int:
    if args.reboots < 2:
        raise LabError(f"--reboots {args.reboots}: expected at least 2, the first one and one into another kernel")
    debian.ensure("build", "emulator", "guest", "tool", "figures")
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    of = commit()
    system = make_system(clean_root(), WORK)
    began = time.monotonic()
    machine_ = Machine(WORK, system, emulator.build())
    machine_.install()
    installed = time.monotonic() - began
    say(f"installed in {installed:.0f} s; drives and consoles are in {WORK}")
    for boot in machine_.go(plan(args.cuts, args.reboots, args.seed)):
        say(f"boot {boot.number}: {boot.kernel}, {2 * boot.files} files right, {boot.seconds:.0f} s, "
            f"ends by {ENDS.get(boot.end, 'a reboot')}")
    results = {"seed": args.seed, "commit": of, "cores": cores(), "accel": accel.choose(),
               "installed": round(installed, 1), "boots": [asdict(boot) for boot in machine_.boots]}
    args.out.mkdir(parents=True, exist_ok=True)
    write_file(args.out / "boots.json", json.dumps(results, indent=1) + "\n")
    draw(results, args.out / "figure")
    print(table(results))
    return 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`boots` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "boots", help="boot a Debian from a root on mtftl, through cuts and a kernel update",
        description="Installs a clean Debian 13 with the packages, moves it to an emulated drive, and boots it from "
        "there. Each boot ends by a power cut or a reboot; each must find what was durable, and need no login.")
    parser.add_argument("--cuts", type=int, default=10, metavar="N",
                        help="boots that a power cut ends; default %(default)s")
    parser.add_argument("--reboots", type=int, default=10, metavar="N",
                        help="boots that a reboot ends, one of them into another kernel; default %(default)s")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the order, and of the cuts' moments")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="where boots.json is kept")
    parser.set_defaults(function=_boots)

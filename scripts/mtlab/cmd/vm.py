# SPDX-License-Identifier: GPL-2.0
"""`lab vm`: a guest of a user's own, from an image of a disk, with a network, ssh and the emulated drive.

It is an ordinary machine: it boots by its own boot loader, and may write to its disk and reboot. The emulator is the
build with all of QEMU's devices. With KVM where that boots a guest.
"""

import argparse
import contextlib
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ..build import emulator, image
from ..run import accel, machine, qemu
from ..run.options import NONE, Options, add_options, namespaces, options_from, profile_of
from ..util.base import LabError, write_file

ADDRESS = "127.0.0.1"
PORT = 2222
SSH = image.HOME / "ssh"
QCOW2 = b"QFI\xfb"


def kind_of(path: Path) -> str:
    """The format of an image by its first bytes: QEMU's own, or the bytes of the disk."""
    if not path.is_file():
        raise LabError(f"{path}: there is no such image; --make makes one with a Debian")
    with open(path, "rb") as f:
        return "qcow2" if f.read(len(QCOW2)) == QCOW2 else "raw"


def ssh_settings(port: int) -> str:
    """What ssh and scp are told by -F: how to reach a guest whose image --make made."""
    return (f"Host guest\nHostName {ADDRESS}\nPort {port}\nUser root\nIdentityFile {image.KEY}\n"
            "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n")


def check_port(port: int) -> None:
    """Say before the guest boots that its port is taken."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((ADDRESS, port))
        except OSError as e:
            raise LabError(f"--port {port}: {e.strerror}") from None


def arguments(binary: Path, options: Options, kind: str, disk: Path, port: int, folder: Path) -> list[str]:
    """QEMU's command line."""
    clock = ["-accel", "kvm", "-cpu", "host"] if kind == "kvm" else qemu.clock_arguments(options, kind)
    return [*qemu.started_by_lab(binary), "-machine", "q35,graphics=off", *clock, "-smp", str(options.cpus),
            "-m", options.memory, "-device", "virtio-rng-pci",
            "-drive", f"file={disk},format={kind_of(disk)},if=none,id=image,discard=unmap",
            "-device", "virtio-blk-pci,drive=image,bootindex=0",
            "-netdev", f"user,id=net,hostfwd=tcp:{ADDRESS}:{port}-:22", "-device", "virtio-net-pci,netdev=net,romfile=",
            "-chardev", "stdio,id=terminal,mux=on,signal=off", "-serial", "chardev:terminal",
            "-mon", "chardev=terminal", *qemu.device_arguments(options, folder), *qemu.watch_arguments(options),
            *(word for given in options.qemu for word in shlex.split(given))]


@contextlib.contextmanager
def _terminal() -> Iterator[None]:
    """QEMU changes the terminal, if there is one; afterwards it is as it was."""
    saved = subprocess.run(["stty", "-g"], stdout=subprocess.PIPE, text=True).stdout.strip() \
        if sys.stdin.isatty() else ""
    try:
        yield
    finally:
        if saved:
            subprocess.run(["stty", saved])


def _vm(args: argparse.Namespace) -> int:
    options = options_from(args)
    machine.check(options)
    check_port(args.port)
    if args.make:
        image.make(args.image, args.packages)
    elif args.packages:
        raise LabError(f"--with {' '.join(args.packages)}: expected --make")
    kind_of(args.image)
    binary, kind = emulator.build(emulator.FULL), accel.choose()
    write_file(SSH, ssh_settings(args.port))
    with machine.folder() as folder, _terminal():
        qemu.make_media(options, folder)
        command = arguments(binary, options, kind, args.image, args.port, folder)
        drive = " ".join(["the flash is", *namespaces(options)]) if profile_of(options) != NONE else "no drive"
        print(f"{kind}, {drive}. Leave with Ctrl-A X. For an image of --make: ssh -F {os.path.relpath(SSH)} guest",
              flush=True)
        return subprocess.run(command).returncode


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`vm` on the command line of scripts/lab."""
    parser = commands.add_parser("vm", help="boot a disk image of your own, with network, ssh and the emulated drive",
                                 description="Boots an image of a disk by its own boot loader, on KVM where it works. "
                                 "The first serial port is this terminal.")
    parser.add_argument("image", type=Path, metavar="IMAGE",
                        help="a disk, qcow2 or raw; the guest writes to it")
    parser.add_argument("--make", action="store_true",
                        help="make the image first: this machine's Debian, with ssh and the target")
    parser.add_argument("--with", dest="packages", nargs="+", default=[], metavar="PACKAGE",
                        help="Debian packages that --make installs besides")
    parser.add_argument("--port", type=int, default=PORT, metavar="N",
                        help="port of this machine that leads to the guest's ssh; default %(default)s")
    add_options(parser, only=("cpus", "memory", "profile", "device", "drives", "media", "watch", "watch_every", "qemu"))
    parser.set_defaults(function=_vm)

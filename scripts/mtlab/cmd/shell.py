# SPDX-License-Identifier: GPL-2.0
"""`lab shell`: an interactive guest over the host's own root folder.

The host's root is mounted read-only over 9p, with an overlay in the guest's memory on top: every tool
of the host is there, and nothing that is done there reaches the host.
"""

import argparse
import os
import shutil
import subprocess
import sys

from ..build import emulator, guest, kernels, target
from ..run import accel, machine, qemu
from ..run.options import add_options, namespaces, options_from
from ..util.base import BUILD, LabError


def _shell(args: argparse.Namespace) -> int:
    if not sys.stdin.isatty():
        raise LabError("the shell needs a terminal; `lab run` runs commands without one")
    options = options_from(args)
    machine.check(options)
    kernel = kernels.get(args.kernel)
    binary = emulator.build()
    kind = accel.choose()
    module = target.module(kernel)
    with machine.folder() as folder:
        qemu.make_media(options, folder)
        device = qemu.device_arguments(options, folder)
        parts = [guest.base(), *filter(None, [guest.modules(kernel)])]
        own = guest.run_archive("", pushed=[], pulled=[], insmod=module, programs=[target.tool()],
                                wait_for=" ".join(namespaces(options)),
                                shell={"LAB_SHELL": "1", "LAB_TERM": os.environ.get("TERM", "vt100"),
                                       "LAB_SIZE": " ".join(map(str, shutil.get_terminal_size())),
                                       "LAB_MODULE_TREE": str(kernel.modules or ""),
                                       **qemu.watch_settings(options, 1)})
        machine.write_initrd(folder / "initrd", parts, own)
        command = [
            *qemu.machine_arguments(binary, options, qemu.clock_arguments(options, kind)),
            *qemu.boot_arguments(kernel, folder / "initrd",
                                    qemu.BOOT.replace("loglevel=5", "loglevel=3") + qemu.CLOCK_BOOT["wall"]),
            "-chardev", "stdio,id=console,mux=on,signal=off", "-serial", "chardev:console", "-mon", "chardev=console",
            *qemu.root_arguments(), *device, *qemu.watch_arguments(options)]
        drive = " ".join(["the flash is", *namespaces(options)])
        print(f"{kind}, {kernel.release}, {BUILD}; {drive}. Leave with exit or Ctrl-A X.")
        saved = subprocess.run(["stty", "-g"], stdout=subprocess.PIPE, text=True).stdout.strip()
        try:
            return subprocess.run(command).returncode
        finally:
            if saved:
                subprocess.run(["stty", saved])


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`shell` on the command line of scripts/lab."""
    parser = commands.add_parser("shell",
                                 help="open an interactive guest that sees the host's files, with the device ready")
    add_options(parser, only=("kernel", "cpus", "memory", "profile", "drives", "media", "watch", "watch_every"))
    parser.set_defaults(function=_shell)

# SPDX-License-Identifier: GPL-2.0
"""Does KVM boot a guest here? Found out by booting one, once per boot of the machine.

/dev/kvm can be opened on machines where no guest ever runs: only a booted guest is proof.
"""

import os
from pathlib import Path

from ..util.base import BUILD, LabError, lock, say, write_file
from . import machine
from .options import NONE, Options

SILENCE = 3             # seconds; with KVM a kernel's first words come within one


def choose() -> str:
    """kvm or tcg, for the wall clock."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = BUILD / "accel" / boot
    with lock("accel"):
        if not known.exists():
            say("booting a guest with KVM to see whether that works here")
            options = Options(profile=NONE, timeout=20, boot_timeout=20, silence=SILENCE,
                                      module=False, cpus=1, memory="512M", append="loglevel=7")
            try:
                works = machine.run("true", options, accel="kvm").ok
            except LabError:
                works = False
            write_file(known, "kvm" if works else "tcg")
            say("KVM works" if works else "KVM boots no guest here: multi-threaded TCG it is")
    return known.read_text()

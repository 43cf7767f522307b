# SPDX-License-Identifier: GPL-2.0
"""What a run in a guest is told besides its command, and which flash devices there are."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..build import kernels
from ..util.base import ROOT, LabError

PROFILES = ROOT / "emulator/profiles"
STOCK = "stock"
NONE = "none"
NAMESPACE = "/dev/nvme0n1"
SOCKETS = {"server2": 2}    # of the models of memory that have more than one
SEED = 42
MODEL = "model"             # a clock: no guest, the model of flash by itself (firmware.py)


@dataclass
class Options:
    """What a run needs to know besides its command; the defaults are those of scripts/lab run."""

    kernel: str = kernels.DEFAULT
    clock: str = "wall"
    cpus: int = 2
    memory: str = "2G"
    quantum: int = 1000
    speed: int = 1
    memory_model: str = ""                  # virtual time: what accesses cost, "": nothing
    sharing: Path | None = None             # and this file gets what its CPUs share
    stall: int = 0                          # virtual time: ns that a CPU stands still now and then, at most; 0: never
    stall_every: int = 100_000              # and ns that it runs between two, in the mean
    seed: int = SEED                        # virtual time: of the emulator's random numbers
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


def profiles() -> list[str]:
    """Names that --profile takes."""
    return sorted(p.stem for p in PROFILES.glob("*.cfg")) + [STOCK, NONE]


def default_profile() -> str:
    return "tlc" if (PROFILES / "tlc.cfg").exists() else STOCK


def profile_of(options: Options) -> str:
    """The name of the device that a run has."""
    return options.profile or default_profile()

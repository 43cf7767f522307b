# SPDX-License-Identifier: GPL-2.0
"""A drive with its FTL inside, without a guest: the black box's own FTL and model of flash, and a load.

`lab firmware NAME=VALUE ...` runs it once. Experiments run it too: a Run whose clock is MODEL has a line for each
drive in place of a script, a name and words. What it computes follows from its sources and words.
"""

import json
import math
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..build.parts import part
from ..util.base import BUILD, ROOT, LabError, digest, fresh_folder, lock, logged, output
from . import outcome
from .options import MODEL
from .outcome import Result
from .process import worked

FOLDER = ROOT / "emulator/simulator"
PROGRAMS = {"firmware": ("firmware", "drive"), "replay": ("replay", "parts", "drive")}     # their sources
# Of the model's functions, those in front of which parts.c puts its own.
WRAPPED = ("flash_op_submit", "flash_op_cancel", "flash_cmd_step", "flash_read", "flash_link_take")
NVME = ROOT / "emulator/hw/nvme"
FOLDERS = [NVME / "flash/model", NVME / "flash/ftl"]       # what of the flash device knows nothing of QEMU


def plain(pattern: str) -> list[Path]:
    """Files of the flash device that know nothing of QEMU."""
    return [path for folder in FOLDERS for path in sorted(folder.glob(pattern))]


@part
def build(name: str = "firmware") -> Path:
    """One of the programs, built where it is not."""
    sources = [*(FOLDER / f"{one}.c" for one in PROGRAMS[name]), *plain("*.c")]
    wraps = [f"-Wl,--wrap={one}" for one in WRAPPED] if "parts" in PROGRAMS[name] else []
    folder = BUILD / "firmware" / digest(*sources, *sorted(FOLDER.glob("*.h")), *plain("*.h"), *wraps)
    with lock("firmware"):
        if not folder.exists():
            with fresh_folder(folder) as part:
                logged(["cc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", f"-I{NVME}", *wraps, "-o",
                        part / name, *sources], BUILD / f"log/{name}.log")
    return folder / name


def simulate(*words: str) -> dict[str, Any]:
    """One drive."""
    found: dict[str, Any] = json.loads(output([build(), *words]))
    return found


def _told(command: Sequence[str | Path]) -> tuple[bytes, float]:
    """What the program prints, and the seconds of a processor that it took."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout and child.stderr
        text, wrong = child.stdout.read(), child.stderr.read()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        took = worked(child)
    if child.returncode:
        raise LabError(f"{' '.join(map(str, command))}: exit {child.returncode}\n{wrong.decode()}")
    return text, took


def inputs(lines: str, seed: int) -> str:
    """The digest of all that the drives of run() are functions of."""
    return digest(build().parent.name, lines, str(seed))


def run(lines: str, seed: int, fresh: bool) -> Result:
    """A drive a line, NAME WORDS: what it told is in NAME.json."""
    program, key = build(), inputs(lines, seed)
    if not fresh and (before := outcome.recall(key)):
        return before
    started = time.monotonic()
    told = {f"{name}.json": _told([program, *words, f"seed={seed + 1}"])
            for name, *words in (line.split() for line in lines.splitlines())}
    result = Result(0, None, "", "", {name: text for name, (text, _) in told.items()}, time.monotonic() - started,
                    key, MODEL, MODEL, sum(took for _, took in told.values()))
    outcome.keep(result)
    return result


def greedy(ratio: float, pages: int) -> float:
    """Write amplification of greedy GC under uniform random writes; ratio: flash with data over what the host sees.

    Each write makes a page stale, in a block of n valid pages with a chance of n: so the number of blocks that have n
    is as 1/n, down to the m of the victims, and ratio = pages (H(pages) - H(m)) / (pages - m). With large
    blocks that is Xiang and Kurkoski's a / (a + W(-a exp(-a))) of 2011.
    """
    def harmonic(n: float) -> float:
        return math.log(n) + 0.5772156649015329 + 1 / (2 * n) - 1 / (12 * n * n)

    least, most = 1e-3, pages - 1e-3
    for _ in range(100):
        m = (least + most) / 2
        if pages * (harmonic(pages) - harmonic(m)) / (pages - m) > ratio:
            least = m
        else:
            most = m
    return pages / (pages - m)

# SPDX-License-Identifier: GPL-2.0
"""README's example, a file system on the target, in a guest's shell and in `lab run`."""

import os
import pty
import re
import select
import time
from pathlib import Path

import pytest
from mtlab.run.testing import LabRun

EXAMPLE = ("mtftl format /dev/nvme0n1 && mtftl open /dev/nvme0n1 fast && mkfs.ext4 -q /dev/mapper/fast && "
           "mount /dev/mapper/fast /mnt && echo kept >/mnt/file && umount /mnt && mtftl close fast && "
           "mtftl open /dev/nvme0n1 fast && mount /dev/mapper/fast /mnt && cat /mnt/file && umount /mnt && "
           "mtftl close fast")


def _talk(command: list[str], *steps: tuple[str, str], seconds: float) -> str:
    """Answer each pattern of a program on a terminal with a line; all that it showed."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    shown, seen, end = "", 0, time.monotonic() + seconds
    left = list(steps)
    while time.monotonic() < end:
        if left and (found := re.search(left[0][0], shown[seen:])):
            seen += found.end()
            os.write(terminal, (left.pop(0)[1] + "\r").encode())
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            shown += os.read(terminal, 65536).decode(errors="replace")
        except OSError:
            break
    else:
        os.kill(child, 15)
        os.waitpid(child, 0)
        pytest.fail(f"no {left[0][0] if left else 'end'} within {seconds:.0f} s:\n{shown}", pytrace=False)
    os.waitpid(child, 0)
    return shown


def test_the_shell_mounts_what_it_made(lab: Path) -> None:
    """As on any machine: no module is named."""
    shown = _talk([str(lab), "shell"], (r"# $", EXAMPLE + "; echo $((40 + 2)) is it"),
                  (r"42 is it", "exit"), seconds=300)
    assert re.search(r"^kept\r*$", shown, re.M), shown


@pytest.mark.parametrize("options", [{}, {"host_root": True}], ids=["guest's own programs", "the host's"])
def test_a_run_mounts_what_it_made(lab_run: LabRun, options: dict[str, bool]) -> None:
    result = lab_run(EXAMPLE, **options)
    assert result.ok and "kept\n" in result.output, result.output

# SPDX-License-Identifier: GPL-2.0
"""`lab top`: a live view of a running guest's flash and FTL, in the terminal.

A guest that was started with `--watch FOLDER` leaves two growing files there: `flash`, the device's counters
as a line of JSON each half second of its clock, and `ftl`, the target's status line at the same pace, from a
serial port. What is shown is the difference of the last two lines of each.
"""

import argparse
import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..exp import counters

BARS = " ▁▂▃▄▅▆▇█"
BLOCK = 4096
BYTES = ("B", "kB", "MB", "GB")


def parse_flash(line: str) -> dict[str, Any] | None:
    """A line of the flash device's stream."""
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return found


def amount(value: float, units: Sequence[str] = ("", "k", "M", "G")) -> str:
    """A number that is quick to read: 1234567 is 1.23M."""
    for unit in units:
        if abs(value) < 1000:
            return f"{value:.3g} {unit}".strip() if unit else f"{value:.0f}"
        value /= 1000
    return f"{value * 1000:.0f} {units[-1]}"


def bar(share: float) -> str:
    """A share from 0 to 1 as one cell; blank is none at all."""
    return BARS[max(0, min(8, math.ceil(8 * share)))]


def _drive_line(before: Mapping[str, Any], now: Mapping[str, Any], seconds: float) -> str:
    """What the FTL inside a black box did."""
    def rate(key: str) -> str:
        return amount((now[key] - before[key]) / seconds)

    return (f"  FTL/s        {now['mapping']}: host {rate('host')}  moved {rate('moved')}  trimmed {rate('trimmed')}"
            f"  merges {rate('merges_switch')} switch, {rate('merges_partial')} partial, {rate('merges_full')} full; "
            f"{now['free_blocks']} blocks free")


def flash_lines(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What the flash did between two lines of its stream."""
    seconds = (now["now_ns"] - before["now_ns"]) / 1e9
    if seconds <= 0:
        return []

    def rate(key: str) -> float:
        return float((now[key] - before[key]) / seconds)

    def command(kind: str) -> float:
        return float((now["commands"][kind] - before["commands"][kind]) / seconds)

    busy = [(b["busy_ns"] - a["busy_ns"]) / (seconds * 1e9) for a, b in zip(before["dies"], now["dies"], strict=True)]
    programs = rate("programs_full") + rate("programs_padded") + rate("programs_finish")
    internal = rate("programmed_bytes") / rate("written_bytes") if rate("written_bytes") else 1
    lines = [
        f"flash   at {now['now_ns'] / 1e9:.1f} s of the guest's clock",
        f"  commands/s   read {amount(command('read'))}  write {amount(command('write') + command('append'))}"
        f"  flush {amount(command('flush'))}  reset {amount(command('reset'))}",
        f"  cells/s      read {amount(rate('reads'))}  program {amount(programs)}  erase {amount(rate('erases'))}",
        f"  bandwidth    read {amount(rate('read_bytes'), BYTES)}/s  write {amount(rate('written_bytes'), BYTES)}/s"
        f"  programmed/written {internal:.2f}",
        f"  buffer       {amount(now['buffer_used'], BYTES)}, at most {amount(now['buffer_max'], BYTES)}",
        f"  dies busy    {100 * sum(busy) / len(busy):.0f}% on average; one row a channel, one cell a die"]
    if "ftl" in now:
        lines.insert(-1, _drive_line(before["ftl"], now["ftl"], seconds))
    channels = now["geometry"]["channels"]
    lines += [f"    {channel:3} |{''.join(bar(busy[die]) for die in range(channel, len(busy), channels))}|"
              for channel in range(channels)]
    return lines


def ftl_lines(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What the target did between two of its status lines."""
    seconds = now["at"] - before["at"]
    if seconds <= 0:
        return []

    grown = counters.grown(before, now)

    def rate(key: str) -> str:
        return amount(grown[key] / seconds)

    waf = sum(grown[k] for k in counters.FLASH) / grown["written"] if grown["written"] else 0
    entries = now["entries"]
    mean = now["wear_total"] / now["zones"]
    return [
        f"target  {now['mode']}, {now['lanes']:.0f} lanes",
        f"  blocks/s     read {rate('read')}  write {rate('written')}  trim {rate('trimmed')}  moved by GC"
        f" {rate('flash_gc')}  flushes {rate('flushes')}",
        f"  bandwidth    read {amount(grown['read'] * BLOCK / seconds, BYTES)}/s"
        f"  write {amount(grown['written'] * BLOCK / seconds, BYTES)}/s",
        f"  WAF          {waf:.2f} now, {now['waf']:.2f} in all",
        f"  zones        free {now['free']:.0f}  open {now['open']:.0f} of {now['open_limit']:.0f}"
        f"  full {now['full']:.0f}  resetting {now['resetting']:.0f}  bad {now['bad']:.0f}  of {now['zones']:.0f}",
        f"  GC           {now['gc']}, begins below {now['low_water']:.0f} free zones; victims/s {rate('victims')}",
        f"  lanes' fill  |{''.join(bar(used / entries) for used in now['fill'])}| of {entries:.0f} entries",
        f"  erases       least {now['wear_least']:.0f}  mean {mean:.1f}  most {now['wear_most']:.0f} a zone"]


class View:
    """Follows both files and keeps the last two lines of each."""

    def __init__(self, folder: Path) -> None:
        self._paths = {name: folder / name for name in _PARSE}
        self._at = dict.fromkeys(_PARSE, 0)
        self._last: dict[str, list[dict[str, Any]]] = {name: [] for name in _PARSE}

    def poll(self) -> None:
        """Take in the whole lines that are new."""
        for name, path in self._paths.items():
            if not path.exists():
                continue
            with open(path, "rb") as f:
                f.seek(self._at[name])
                data = f.read()
            whole = data[:data.rfind(b"\n") + 1]
            self._at[name] += len(whole)
            for line in whole.decode(errors="replace").splitlines()[-2:]:
                found = _PARSE[name](line)
                self._last[name] = [*self._last[name][-1:], found] if found else []     # none: the target is closed

    def screen(self) -> list[str]:
        """The whole view as lines."""
        flash, ftl = self._last["flash"], self._last["ftl"]
        lines = flash_lines(*flash) if len(flash) == 2 else ["flash   nothing yet: is a guest running with --watch?"]
        return [*lines, "", *(ftl_lines(*ftl) if len(ftl) == 2 else ["target  not open"])]


_PARSE: dict[str, Callable[[str], dict[str, Any] | None]] = {"flash": parse_flash, "ftl": counters.status}


def _top(args: argparse.Namespace) -> int:
    view = View(args.folder)
    if args.once or not sys.stdout.isatty():
        view.poll()
        print("\n".join(view.screen()))
        return 0
    sys.stdout.write("\033[?1049h\033[?25l")            # the terminal's other screen, no cursor
    try:
        while True:
            view.poll()
            width = shutil.get_terminal_size().columns
            sys.stdout.write("\033[H" + "".join(f"{line[:width]}\033[K\r\n" for line in view.screen()) +
                             "\033[J(Ctrl-C to leave)")
            sys.stdout.flush()
            time.sleep(0.5)
    finally:
        sys.stdout.write("\033[?25h\033[?1049l")
        sys.stdout.flush()


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`top` on the command line of scripts/lab."""
    parser = commands.add_parser("top", help="watch a running guest's flash and FTL in the terminal",
                                 description="Shows a guest that `lab run` or `lab shell` started with --watch FOLDER.")
    parser.add_argument("folder", type=Path, metavar="FOLDER",
                        help="that `lab run --watch` or `lab shell --watch` was given")
    parser.add_argument("--once", action="store_true", help="print one look and end")
    parser.set_defaults(function=_top)

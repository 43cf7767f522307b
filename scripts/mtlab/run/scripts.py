# SPDX-License-Identifier: GPL-2.0
"""Tests that are shell scripts, run in a guest: what their headers say. collect.py has what pytest makes of them.

docs/lab/tests.md describes the header. A folder of scripts has a file `drives` beside them: flash
devices that headers ask for by name.
"""

import configparser
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..util.base import LabError
from .options import Options

NEEDED = ("clock", "cpus", "profile")
OURS = ("kernels", "cases", "needs", "judge")       # what a header has besides the fields of Options
DRIVES = "drives"


@dataclass(frozen=True)
class Script:
    """A script and what its header says."""

    path: Path
    shows: str
    options: dict[str, Any]         # by the names of the fields of Options
    kernels: tuple[str, ...]        # a test for each of them
    cases: tuple[str, ...]          # a test for each of these words, which is the script's argument
    needs: tuple[str, ...]          # fixtures: each has files to push, or skips the test
    judge: str                      # a Python file that runs it and judges what came out, "": none has to
    body: str                       # what runs in the guest


def drives(path: Path) -> dict[str, dict[str, str]]:
    """Drives by name, with the namespace's properties."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(path)
    found: dict[str, dict[str, str]] = {}
    for name in parser.sections():
        own = dict(parser[name])
        found[name] = found[own.pop("like")] | own if "like" in own else own
    return found


def _device(words: str, folder: Path) -> dict[str, str]:
    """The properties that `NAME KEY=VALUE...` gives a drive."""
    named, device = drives(folder / DRIVES), dict[str, str]()
    for word in words.split():
        key, equals, value = word.partition("=")
        if not equals and word not in named:
            raise LabError(f"device {word}: expected KEY=VALUE or one of {', '.join(named)}")
        device |= {key: value} if equals else named[word]
    return device


def _value(name: str, text: str, folder: Path) -> Any:
    kinds = {one.name: one.type for one in fields(Options)}
    if name not in kinds:
        raise LabError(f"no field '{name}': there are {', '.join([*kinds, *OURS])}")
    if name == "device":
        return _device(text, folder)
    if name in ("pull", "packages"):
        return text.split()
    if kinds[name] not in (int, float, str):
        raise LabError(f"field '{name}': a header cannot give it")
    return kinds[name](text)


def parse(path: Path) -> Script:
    """A script's header and body; complains with the file's name."""
    head, _, body = path.read_text().partition("\n\n")
    shows: list[str] = []
    said: dict[str, str] = {}
    try:
        lines = head.splitlines()
        if lines[:1] != ["#!/bin/bash"]:
            raise LabError("expected #!/bin/bash in the first line")
        for line in lines[1:]:
            text = line.removeprefix("#").strip()
            if field := re.fullmatch(r"([a-z_]+): *(.*)", text):
                if field[1] in said:
                    raise LabError(f"field '{field[1]}' is there twice")
                said[field[1]] = field[2]
            elif text and not text.startswith("SPDX-"):
                shows.append(text)
        if missing := [name for name in NEEDED if name not in said]:
            raise LabError(f"the header has no {', '.join(missing)}")
        if not shows:
            raise LabError("the header does not say what the test shows")
        ours = {name: said.pop(name, "") for name in OURS}
        options = {name: _value(name, text, path.parent) for name, text in said.items()}
    except (LabError, ValueError) as e:
        raise LabError(f"{path}: {e}") from None
    return Script(path, " ".join(shows), options, tuple(ours["kernels"].split()), tuple(ours["cases"].split()),
                  tuple(ours["needs"].split()), ours["judge"], body)


def command(script: Script, words: Sequence[str] = ()) -> str:
    """What bash is given in the guest."""
    return (f"set -- {shlex.join(words)}\n" if words else "") + script.body

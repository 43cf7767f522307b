# SPDX-License-Identifier: GPL-2.0
"""The layers: which folder may know of which. `lab lint` checks the sources; `lab layers` draws the map of the target.

The folders of the module are its layers, and target/Makefile names them from the top down. A file includes
and calls what lies in its own folder or in one below, and no files form a circle. The sources tell which file
knows of which. The flash device's folders are layers too; in accel/tcg it is enough that there is no circle.
imports.py has the lab's rule.

A component of the module is a member of struct mtftl. The fields of its struct belong to the source and the
header that define it, and to those of its name. No other file uses them.

A function of the target, the tool or the simulator has at most MOST_FUNCTION lines.

Statements that check what must hold are counted too: LEAST_CHECKED has how many each function has at least.
"""

import argparse
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..build import target
from ..util.base import ROOT

DRAWN = "docs/design/layers.md"
MOST_FOLDERS = 10
MOST_PAIRS = 30             # of folders, one of which knows of the other
MOST_LINES = 120            # of a header; LONG ones describe what is as long: a format, buffers, tracepoints, the drive
LONG = {"admit.h", "device.h", "format.h", "ring.h", "trace.h", "parse.h"}
MOST_FUNCTION = 60          # lines of a function's body, braces included

# Checked statements for each function, at least. The files named are those whose state all others rely on.
LEAST_CHECKED = {"target": 0.4, "emulator/hw/nvme/flash": 0.4, "emulator/accel/tcg": 0.39}
WELL_CHECKED = ["map/map", "map/ring", "zone/zones", "zone/life", "zone/stream", "zone/write", "durable/recover",
                "durable/checkpoint"]
_FUNCTION = re.compile(r"^(?!\s|#|typedef)[A-Za-z_][^;{}#=]*?\b\w+\([^;{}]*\)\s*\n\{", re.M)
_CHECK = re.compile(r"\b(?:mtftl_assert|mtftl_assert_size|assert|WARN_ON|WARN_ON_ONCE|lockdep_assert_\w+|static_assert"
                    r"|_Static_assert|BUILD_BUG_ON|QEMU_BUILD_BUG_ON|g_assert\w*)\(")

# Folders of the flash device below emulator/hw/nvme, from the top down
FLASH = ["", "flash/ftl", "flash/model"]

Arrows = dict[str, dict[str, str]]      # from file to file, with what makes it


def _texts(root: Path, files: Iterable[Path]) -> dict[str, str]:
    """Files below a folder without their comments, by their names from there."""
    return {str(path.relative_to(root)): re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
            for path in sorted(files)}


def _c_arrows(root: Path, files: Iterable[Path]) -> Arrows:
    """What C files below a folder include and call of each other. Includes name a file from there, or beside."""
    texts = _texts(root, files)
    defined = {name: file for file, text in texts.items() if file.endswith(".c")
               for name in re.findall(r"^(?!static|\s)[^\n;={}#]*?\b(\w+)\([^;{}]*\)\n\{", text, re.M)}
    arrows: Arrows = {}
    for file, text in texts.items():
        to = arrows.setdefault(file, {})
        for name in re.findall(r'^#include "([^"]+)"', text, re.M):
            other = name if name in texts else os.path.normpath(Path(file).parent / name)
            if other in texts and _part(other) != _part(file):
                to.setdefault(other, f"includes {name}")
        for name in re.findall(r"\b(\w+)\(", text) if file.endswith(".c") else ():
            if defined.get(name, file) != file:
                to.setdefault(defined[name], f"calls {name}()")
    return arrows


def _flat_c_arrows(folder: Path) -> Arrows:
    return _c_arrows(folder, folder.glob("*.[ch]"))


def _part(file: str) -> str:
    """A source and its header are one."""
    return file.rpartition(".")[0]


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def upward(arrows: Arrows, folders: list[str]) -> Iterator[str]:
    """Arrows between folders that do not go down, and files whose folder is not one of these."""
    for file, to in arrows.items():
        if _folder(file) not in folders:
            yield f"{file} lies in none of the folders that target/Makefile names"
            continue
        for other, why in to.items():
            if _folder(other) in folders and folders.index(_folder(other)) < folders.index(_folder(file)):
                yield f"{file} {why}, which lies above it in {_folder(other)}/"


def pairs(arrows: Arrows) -> dict[str, set[str]]:
    """Which folders know of which others."""
    found: dict[str, set[str]] = {}
    for file, to in arrows.items():
        found.setdefault(_folder(file), set()).update(_folder(other) for other in to)
    return {folder: others - {folder} for folder, others in found.items()}


def circle(arrows: Arrows) -> list[str]:
    """A circle of files that know each other, or nothing."""
    graph: dict[str, set[str]] = {}
    for file, to in arrows.items():
        graph.setdefault(_part(file), set()).update(_part(other) for other in to)
    done: set[str] = set()

    def search(at: str, path: list[str]) -> list[str]:
        if at in path:
            return [*path[path.index(at):], at]
        if at in done:
            return []
        for other in sorted(graph.get(at, set()) - {at}):
            found = search(other, [*path, at])
            if found:
                return found
        done.add(at)
        return []

    for file in graph:
        found = search(file, [])
        if found:
            return found
    return []


def _pointers(text: str, kind: str) -> set[str]:
    """Names that a text declares as pointers to a struct."""
    found = re.findall(rf"\bstruct {kind} \*+\s*(?:const\s+)?(\w+)\s*((?:(?:=[^,;]*)?,\s*\*+\s*\w+)*)\s*[=;,)\[]", text)
    return {name for first, more in found for name in (first, *re.findall(r",\s*\*+\s*(\w+)", more))}


def _members(texts: Iterable[str], kind: str) -> set[str]:
    """Members of any struct that point to one, as patterns. If another struct has one of that name, it is ftl's."""
    bodies = "".join(m[1] for text in texts for m in re.finditer(r"^struct \w+ \{\n(.*?)^\}", text, re.M | re.S))
    return {rf"\bftl\)?(?:->|\.)\s*{name}" if re.search(rf"\bstruct (?!{kind}\b)\w+ \*+{name};", bodies)
            else rf"(?:->|\.)\s*{name}" for name in _pointers(bodies, kind)}


def _uses(text: str, kind: str, members: set[str], functions: set[str]) -> int:
    """How often a file uses fields of a struct, however it comes to it."""
    member = rf"(?:{'|'.join(sorted(members)) or '(?!)'})"
    without_type = rf"\b(?:__auto_type|auto|typeof\([^;]*?\))\s+\*?(\w+)\s*=[^;=]*{member}\s*;"
    local = _pointers(text, kind) | set(re.findall(without_type, text))
    named = rf"(?<![\w.>])(?:{'|'.join(sorted(local)) or '(?!)'})"
    call = rf"\b(?:{'|'.join(sorted(functions)) or '(?!)'})\((?:[^()]|\([^()]*\))*\)"
    cast = rf"\(struct {kind} \*\)[^;]*?"
    pointer = rf"(?:{member}|{named}|{call}|{cast})"
    copies = "|".join(sorted(set(re.findall(rf"\bstruct {kind} (\w+)\s*[=;]", text)))) or "(?!)"
    ways = (rf"{pointer}[\s)]*->\s*(?=\w)",
            rf"\(\s*\*[^();]*{pointer}\s*\)\s*\.\s*(?=\w)",
            rf"(?<![\w.>])(?:{copies})\.(?=\w)",
            rf"\b(?:container_of|offsetof)\([^;]*?struct {kind},\s*(?=\w)")
    return len({m.end() for way in ways for m in re.finditer(way, text)})


def reach_ins(texts: dict[str, str]) -> dict[str, dict[str, int]]:
    """How often each file uses fields of another one's component: by component and file.

    A field is used through struct mtftl (ftl->zones->lock), or through whatever else points to the component's
    struct: a variable, a member, what a function returns.
    """
    ftl = [m[1] for text in texts.values() for m in re.finditer(r"^struct mtftl \{\n(.*?)^\}", text, re.M | re.S)]
    found: dict[str, dict[str, int]] = {}
    for kind, component in re.findall(r"struct (\w+) \*(\w+);", "".join(ftl)):
        own = {_part(file) for file, text in texts.items() if re.search(rf"^struct {kind} {{", text, re.M)
               or Path(file).stem == component}
        members = _members(texts.values(), kind)
        functions = {name for text in texts.values() for name in re.findall(rf"\bstruct {kind} \*(\w+)\(", text)}
        uses = {file: _uses(text, kind, members, functions) for file, text in texts.items() if _part(file) not in own}
        found[component] = {file: number for file, number in uses.items() if number}
    return found


def long_functions(text: str) -> Iterator[tuple[str, int]]:
    """Functions of a C file with more lines than MOST_FUNCTION, and how many they have."""
    for m in re.finditer(r"^[a-z][^\n;={}]*?(\w+)\([^;{}]*\)\n(\{\n.*?^\}$)", text, re.M | re.S):
        lines = m[2].count("\n") + 1
        if lines > MOST_FUNCTION:
            yield m[1], lines


def checked(texts: Iterable[str]) -> tuple[int, int]:
    """Functions in sources without comments, and statements that check what must hold, at run or compile time."""
    functions = checks = 0
    for text in texts:
        functions += len(_FUNCTION.findall(text))
        checks += len(_CHECK.findall(re.sub(r"^#\s*define(?:.*\\\n)*.*$", "", text, flags=re.M)))
    return functions, checks


def _checked_parts() -> Iterator[tuple[str, float, int, int]]:
    """Parts of the project: the least checks for each function, functions, checks."""
    module = _texts(target.SOURCE, target.module_sources())
    for part, least in LEAST_CHECKED.items():
        texts = module if part == "target" else _texts(ROOT, (ROOT / part).rglob("*.[ch]"))
        yield part, least, *checked(texts.values())
    for folder in target.folders():
        yield f"target/{folder}", 0, *checked(text for file, text in module.items() if _folder(file) == folder)
    yield ", ".join(file.rpartition("/")[2] for file in WELL_CHECKED), 1, *checked(
        module[f"{file}.c"] for file in WELL_CHECKED)


def _target_arrows() -> Arrows:
    return _c_arrows(target.SOURCE, target.module_sources())


def _described(part: str) -> str:
    """What a file's header, or the file, says it is."""
    path = target.SOURCE / f"{part}.h"
    text = (path if path.exists() else path.with_suffix(".c")).read_text()
    comment = re.search(r"/\*\n((?: \*.*\n)+)", text)
    said = " ".join(re.findall(r" \* ?(.*)", comment[1])) if comment else ""
    return re.split(r"[.:;] |[.]$", said)[0].strip()


def picture() -> str:
    """The target's folders, from the top down, with those that each knows of; and what their files are."""
    arrows = _target_arrows()
    below = pairs(arrows)
    folders = target.folders()
    lines = []
    for folder in folders:
        known = " ".join(other for other in folders if other in below.get(folder, ()))
        lines.append(f"{folder}/" + (f" -> {known}" if known else ""))
        for part in sorted({_part(file) for file in arrows if _folder(file) == folder}):
            lines.append(f"    {part.rpartition('/')[2]:<11} {_described(part)}")
    return "\n".join(lines)


def _target_complaints() -> Iterator[str]:
    arrows, folders = _target_arrows(), target.folders()
    yield from (f"target: {line}" for line in upward(arrows, folders))
    if len(folders) > MOST_FOLDERS:
        yield f"target has {len(folders)} folders, expected {MOST_FOLDERS} at most"
    known = sum(map(len, pairs(arrows).values()))
    if known > MOST_PAIRS:
        yield f"target has {known} pairs of folders that know of each other, expected {MOST_PAIRS} at most"
    for path in target.module_sources():
        lines = len(path.read_text().splitlines())
        if path.suffix == ".h" and lines > MOST_LINES and path.name not in LONG:
            yield f"target/{path.relative_to(target.SOURCE)} has {lines} lines, expected {MOST_LINES} at most"
    for path in [*target.module_sources(),
                 *(p for name in ("tool", "simulator") for p in sorted((target.SOURCE / name).glob("*.[ch]")))]:
        for name, lines in long_functions(path.read_text()):
            yield (f"target/{path.relative_to(target.SOURCE)}: {name}() has {lines} lines,"
                   f" expected {MOST_FUNCTION} at most")
    members = re.search(r"^struct mtftl \{\n(.*?)^\}", (target.SOURCE / "device/ftl.h").read_text(), re.M | re.S)
    if not members or members[1].count(";") > 15:
        yield "target/device/ftl.h: struct mtftl has more than 15 members"
    found = circle(arrows)
    if found:
        yield f"target: a circle: {' -> '.join(found)}"
    for component, uses in reach_ins(_texts(target.SOURCE, target.module_sources())).items():
        if uses:
            yield (f"target: {sum(uses.values())} uses of fields of ftl->{component} outside of its files: "
                   + ", ".join(f"{file} {uses[file]}" for file in sorted(uses)))
    if picture() not in (ROOT / DRAWN).read_text():
        yield f"{DRAWN} does not show the folders as they are, expected what `scripts/lab layers` prints"


def complaints() -> str:
    """All that is wrong with the layers, a line each."""
    said = list(_target_complaints())
    for part, least, functions, checks in _checked_parts():
        if checks < least * functions:
            said.append(f"{part}: {checks} checked statements in {functions} functions, expected {least} each at least")
    nvme = ROOT / "emulator/hw/nvme"
    flash = _c_arrows(nvme, (path for folder in FLASH for path in (nvme / folder).glob("*.[ch]")))
    said += [f"emulator/hw/nvme: {line}" for line in upward(flash, FLASH)]
    for name, arrows in (("emulator/hw/nvme", flash),
                         ("emulator/accel/tcg", _flat_c_arrows(ROOT / "emulator/accel/tcg"))):
        found = circle(arrows)
        if found:
            said.append(f"{name}: a circle: {' -> '.join(found)}")
    return "\n".join(said)


def _layers(args: argparse.Namespace) -> int:
    if args.checks:
        for part, _, functions, checks in _checked_parts():
            print(f"{checks:5} checks in {functions:4} functions: {checks / max(functions, 1):.2f}  {part}")
    else:
        print(picture())
    return 0


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`layers` on the command line of scripts/lab."""
    parser = commands.add_parser("layers", help="draw the target's folders and files, and which may use which")
    parser.add_argument("--checks", action="store_true", help="count the statements that check what must hold instead")
    parser.set_defaults(function=_layers)

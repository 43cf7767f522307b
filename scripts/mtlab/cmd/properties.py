# SPDX-License-Identifier: GPL-2.0
"""The properties of the flash device as docs/emulator/properties.md lists them, read from their table in flash.c."""

import re

from ..util.base import ROOT

SOURCE = ROOT / "emulator/hw/nvme/flash.c"
_TABLE, _END = "<!-- properties: scripts/lab report --readme -->", "<!-- end of properties -->"
_ROW = r'^    (\w+)\("(\w+)", (\w+), [^,]+,\s*((?:"[^"]*"\s*)+)\)'
_KINDS = {"BOOL": "on or off", "U32": "number", "U64": "number", "NS": "number", "SIZE": "size", "STR": "text"}


def rows() -> list[tuple[str, str, bool, str]]:
    """Each property: its name, the kind of its value, whether it may change in a run, what it is."""
    text = SOURCE.read_text().split("nvme_flash_props[] = {")[1].split("\n};")[0]
    return [(f"flash.{name}", _KINDS[kind], how == "LIVE", " ".join(re.findall(r'"([^"]*)"', rest)))
            for how, name, kind, rest in re.findall(_ROW, text, re.M)]


def table() -> str:
    """The rows as Markdown."""
    return "\n".join(["| property | value | in a run | |", "|---|---|---|---|",
                      *(f"| `{name}` | {kind} | {'yes' if live else ''} | {said} |"
                        for name, kind, live, said in rows())])


def update_page(text: str) -> str:
    """A page with the table as the properties are declared."""
    before, rest = text.split(_TABLE)
    return f"{before}{_TABLE}\n\n{table()}\n\n{rest[rest.index(_END):]}"

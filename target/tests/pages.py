# SPDX-License-Identifier: GPL-2.0
"""The commands of a page of docs/, for tests that type them."""

import re
from pathlib import Path


def blocks(page: Path) -> dict[tuple[str, int], list[str]]:
    """Its blocks of commands, by section and number; those before the first section are of "Begin"."""
    found = {}
    for section in f"Begin\n{page.read_text().split(chr(10), 1)[1]}".split("\n## "):
        title, _, text = section.partition("\n")
        for number, block in enumerate(re.findall(r"(?:^    .*\n)+", text, re.M), 1):
            found[title, number] = [line.strip() for line in block.splitlines()]
    return found

# SPDX-License-Identifier: GPL-2.0
"""What the guest tests of the target show, and under which kernels, as docs/lab/tested.md lists them.

Both are read from the headers of target/tests/guest/*.sh, from which pytest makes the tests.
"""

import re
from collections.abc import Iterator

from ..build import kernels
from ..run import scripts
from ..run.scripts import Script
from ..util.base import ROOT

FOLDER = ROOT / "target/tests/guest"
_TABLE, _END = "<!-- tested: scripts/lab report --readme -->", "<!-- end of tested -->"
_FEW = 6        # tests that are named


def _scripts() -> list[Script]:
    return [scripts.parse(path) for path in sorted(FOLDER.glob("*.sh"))]


def by_kernel() -> dict[str, dict[str, int]]:
    """By kernel, how often each script is a test under it."""
    found: dict[str, dict[str, int]] = {series: {} for series in kernels.SERIES}
    for script in _scripts():
        for kernel in script.kernels or (script.options.get("kernel", kernels.DEFAULT),):
            found.setdefault(kernel, {})[script.path.stem] = max(len(script.cases), 1)
    return found


def _lines() -> Iterator[str]:
    yield from ("| kernel | tests in a guest | which |", "|---|---|---|")
    for kernel, of in by_kernel().items():
        named = ", ".join(name.replace("_", " ") for name in sorted(of)) if len(of) <= _FEW else "see below"
        yield f"| {kernel} | {sum(of.values())} | {named} |"
    yield from ("", "| test | what it shows |", "|---|---|")
    for script in _scripts():
        said = re.split(r"(?<=\.) (?=[A-Z])", script.shows)[0].replace("|", "\\|")
        yield f"| {script.path.stem.replace('_', ' ')} | {said} |"


def update_page(text: str) -> str:
    """The page as the headers are."""
    before, rest = text.split(_TABLE)
    return f"{before}{_TABLE}\n\n" + "\n".join(_lines()) + f"\n\n{rest[rest.index(_END):]}"

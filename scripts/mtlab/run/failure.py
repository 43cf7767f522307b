# SPDX-License-Identifier: GPL-2.0
"""What went wrong in a guest, read from its console.

A failure has a kind, an exit status of its own for scripts/lab, and the kernel's lines. The first
report on the console decides: what follows (the panic after an oops) is its consequence.
"""

import re
from dataclasses import dataclass

# Exit status and meaning of each kind; documented in docs/lab/guests.md.
KINDS = {
    "setup": (240, "the lab could not start"),
    "qemu": (241, "the emulator failed"),
    "panic": (242, "the guest's kernel panicked"),
    "oops": (243, "the guest's kernel oopsed"),
    "bug": (244, "the guest's kernel hit a BUG"),
    "warning": (245, "the guest's kernel printed a WARNING"),
    "lockdep": (246, "the guest's kernel reports a locking error"),
    "sanitizer": (247, "a sanitizer of the guest's kernel reports an error"),
    "hang": (248, "the guest hangs"),
    "timeout": (249, "the time was up"),
    "lost": (250, "the guest ended without a result"),
    "missing": (251, "the command made no such file to pull"),
}

_PATTERNS = [(kind, re.compile(pattern)) for kind, pattern in (
    ("sanitizer", r"BUG: (KASAN|KCSAN|KFENCE|KMSAN)|UBSAN:|kmemleak: \d+ new suspected"),
    ("lockdep", r"possible (circular|recursive) locking|inconsistent lock state|lock order inversion"
                r"|suspicious RCU usage|BUG: sleeping function|Invalid wait context|bad unlock balance"
                r"|BUG: scheduling while atomic|lock held when returning|still has locks held"
                r"|held lock freed|BUG: spinlock|unsafe locking scenario|safe -> \S+unsafe lock order"),
    ("hang", r"BUG: soft lockup|hard LOCKUP|rcu: INFO: .*stall|INFO: task .* blocked.* for more than"
             r"|BUG: workqueue lockup"),
    ("bug", r"kernel BUG at"),
    ("oops", r"BUG: (kernel|unable to handle)|Oops:|general protection fault"),
    ("warning", r"WARNING: (CPU: |.*, CPU#\d+: )"),
    ("panic", r"Kernel panic - not syncing"),
)]
_CUT_HERE = "[ cut here ]"    # begins a report whose message comes before the line that names its kind
_BEFORE = 3                 # lines from there to that line, at most
_LINES = 60
_HANG_LINES = 300           # every CPU's backtrace


@dataclass(frozen=True)
class Failure:
    """One failure: its kind (a key of KINDS) and the lines that show it."""

    kind: str
    lines: tuple[str, ...] = ()
    detail: str = ""

    @property
    def status(self) -> int:
        return KINDS[self.kind][0]

    def __str__(self) -> str:
        first = KINDS[self.kind][1] + (f": {self.detail}" if self.detail else "")
        return "\n".join([first, *("  | " + line for line in self.lines)])


def _begin(lines: list[str], number: int) -> int:
    """Where the report begins whose kind a line names: a warning's own words come first."""
    for before in range(number - 1, max(number - _BEFORE, 0) - 1, -1):
        if _CUT_HERE in lines[before]:
            return before
    return number


def find(console: str) -> Failure | None:
    """The first report on a console, or nothing."""
    lines = console.splitlines()
    for number, line in enumerate(lines):
        for kind, pattern in _PATTERNS:
            if pattern.search(line):
                text = re.sub(r"^\[[ \d.T]+\] *", "", line).strip("- []")
                begin = _begin(lines, number)
                return Failure(kind, tuple(lines[begin:begin + (_HANG_LINES if kind == "hang" else _LINES)]), text)
    return None

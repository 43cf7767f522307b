# SPDX-License-Identifier: GPL-2.0
"""Admission in all states of small drives (tests/model), and whether that finds what is planted in it."""

import re
import subprocess
from pathlib import Path

import pytest
from mtlab.build import debian, target
from mtlab.util.base import BUILD

ADMIT = target.SOURCE / "policy/admit.c"
CC = ["cc", "-O2", "-std=gnu11", "-D_GNU_SOURCE", f"-I{target.SOURCE}", f"-I{target.SOURCE / 'tool'}"]

# A name, a condition of admit.c, what it becomes, a drive on which that is seen.
MUTANTS = [
    ("no victim shuts the gate", "!state->no_victim && mtftl_admit_spare", "state->no_victim && mtftl_admit_spare",
     "5x2-discards"),
    ("a user needs less than no zone to spare", "mtftl_admit_spare(limits, state) > 0;",
     "mtftl_admit_spare(limits, state) < 0;", "5x2-discards"),
    ("a zone more than the drive allows", "+ for_gc < limits->data_zones", "+ for_gc <= limits->data_zones",
     "5x2-discards"),
    ("a place in the budget is kept from GC", "if (right != MTFTL_RIGHT_GC && !state->gc_has_zone",
     "if (right == MTFTL_RIGHT_GC && !state->gc_has_zone", "5x2-discards"),
    ("users need zones if they have room", "return blocks > room ?", "return blocks < room ?", "5x2-discards"),
    ("users are paced while GC rests", "state->gc_works && coming <", "state->gc_works || coming <", "5x2-discards"),
    ("a closing zone is nothing under way", "if (state->zones[MTFTL_ZONE_CLOSING] || state->in_flight",
     "if (state->in_flight", "5x2-discards"),
    ("GC leaves a promise to empty buffers", "if (!state->buffers_empty)", "if (state->buffers_empty)", "5x2"),
    ("GC shares zones before the gate", "\t\treturn state->gated;", "\t\treturn !state->gated;", "5x2"),
    ("all is over while a zone is empty", "return !empty(state) && !in_use(state)", "return !in_use(state)", "5x2"),
]


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The checker but for admission."""
    debian.ensure("build")
    folder = tmp_path_factory.mktemp("model")
    sources = [*sorted((target.SOURCE / "tests/model").glob("*.c")), target.SOURCE / "policy/rate.c"]
    made = [folder / f"{source.stem}.o" for source in sources]
    for source, built in zip(sources, made, strict=True):
        subprocess.run([*CC, "-c", "-o", built, source], check=True)
    return made


def test_each_state_of_small_drives_goes_on() -> None:
    """On each drive, whatever fails within its bounds."""
    debian.ensure("build", "tool")
    done = subprocess.run(["make", "-s", "-C", target.SOURCE, f"BUILD={BUILD}/host", "model"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    drives = re.findall(r"^model (\S+) +(\d+) states +\d+ steps +(\d+) ends", done.stdout, re.M)
    print(done.stdout)
    assert len(drives) >= 10 and all(int(states) > 10_000 for _, states, _ in drives)
    assert all(ends == "0" for _, _, ends in drives)
    page = (target.SOURCE.parent / "docs/lab/torture.md").read_text()
    rows = re.findall(r"^\| (\S+) \| [^|]+ \| ([\d,]+) \| [\d.]+ s \|$", page, re.M)
    assert [(name, states.replace(",", "")) for name, states in rows] == [(name, states) for name, states, _ in drives]


@pytest.mark.parametrize(("name", "old", "new", "drive"), MUTANTS, ids=[name for name, *_ in MUTANTS])
def test_a_wrong_comparison_is_found(name: str, old: str, new: str, drive: str, objects: list[Path],
                                     tmp_path: Path) -> None:
    source = ADMIT.read_text()
    assert source.count(old) == 1, f"{name}: admit.c has changed, expected {old!r} once"
    (tmp_path / "admit.c").write_text(source.replace(old, new))
    subprocess.run([*CC, "-o", tmp_path / "model", tmp_path / "admit.c", *objects], check=True)
    done = subprocess.run([tmp_path / "model", drive], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and re.search(r"^wrong: ", done.stdout, re.M), done.stdout[-2000:]

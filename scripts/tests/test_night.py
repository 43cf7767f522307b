# SPDX-License-Identifier: GPL-2.0
"""The list of what a night does: each command is one of the lab's, and no failure hides another part."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from mtlab.build import kernels
from mtlab.cmd import cli, night
from mtlab.util.base import ROOT, LabError


@pytest.mark.parametrize("part", night.PARTS, ids=[part.name for part in night.PARTS])
def test_each_part_is_a_command_of_the_lab(part: night.Part) -> None:
    args = cli._parser().parse_args(night.words(part, 7))
    assert args.which in ("torture", "mutants", "fuzz", "test")
    kernels.check(getattr(args, "kernel", kernels.DEFAULT))
    if "{seed}" in part.command:
        assert 7 in (getattr(args, "seed", None), getattr(args, "shuffle", None))
    assert all((ROOT / path).exists() for path in getattr(args, "paths", []))


def test_a_part_that_fails_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    ran = []

    def lab(command: Sequence[str], log: Path) -> int:
        ran.append(command[0])
        return int(command[0] == "fuzz")

    monkeypatch.setattr(night, "LOGS", tmp_path / "night")
    monkeypatch.setattr(night, "_lab", lab)
    parts = [part for part in night.PARTS if part.name in ("fuzz", "shuffle", "storm")]
    assert night.night(parts, 1) == 1 and sorted(ran) == ["fuzz", "test", "torture"]
    assert "night: 2 of 3 parts are well; failed: fuzz" in capsys.readouterr().out
    assert night.night(parts[:1], 1) == 0


def test_an_unknown_part_lists_the_known() -> None:
    args = cli._parser().parse_args(["night", "cuts", "day"])
    with pytest.raises(LabError, match="no part 'day': there are cuts, "):
        args.function(args)


def test_the_docs_show_the_list() -> None:
    assert night.table() in (ROOT / "docs/lab/torture.md").read_text()


def test_continuous_integration_has_none_of_it() -> None:
    assert "night" not in (ROOT / ".ci/run").read_text()

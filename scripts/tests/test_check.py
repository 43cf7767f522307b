# SPDX-License-Identifier: GPL-2.0
"""What lint remembers: only files that a checker found clean, and only as long as nothing changes."""

from pathlib import Path

import pytest
from mtlab import check

CHECKER = """#!/bin/sh
printf '%s ' "$@" >>"$0.log"
shift 2
! grep -l bad "$@"
"""


def test_a_clean_file_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A complaint comes back each time, and a change of the file, the options or the checker is seen."""
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "LINT", tmp_path / "lint")
    checker, good, other = tmp_path / "checker", tmp_path / "good", tmp_path / "other"
    log = tmp_path / "checker.log"
    checker.write_text(CHECKER)
    good.write_text("fine")
    other.write_text("bad")

    def checked(*files: Path, option: str = "-e") -> tuple[str, list[str]]:
        log.write_text("")
        said = check.check_files(["sh", checker, option, "fine|bad"], checker, files)
        return said, [Path(word).name for word in log.read_text().split() if word.startswith("/")]

    assert checked(good) == ("", ["good"])
    assert checked(good) == ("", [])
    for _ in range(2):
        said, names = checked(good, other)
        assert "other" in said and names == ["other"]
    other.write_text("fine")
    assert checked(good, other) == ("", ["other"])
    assert checked(good, other, option="-E") == ("", ["good", "other"])
    checker.write_text(CHECKER + "# another version\n")
    assert checked(good) == ("", ["good"])
    good.write_text("bad")
    assert "good" in checked(good, other)[0]

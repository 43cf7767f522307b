# SPDX-License-Identifier: GPL-2.0
"""Packages of Debian's in a guest: where their files are, and which of two stays."""

from pathlib import Path

import pytest
from mtlab.build import debian, packages
from mtlab.run.testing import LabRun
from mtlab.util.base import LabError
from mtlab.util.cpio import Archive, contents


def test_files_of_packages_go_where_the_guest_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unpack(found: list[str], suite: str, folder: Path) -> None:
        for package in found:
            name = package.partition("=")[0]
            for file in (f"usr/sbin/{name}", "bin/there", f"usr/share/doc/{name}",
                         f"usr/lib/x86_64-linux-gnu/lib{name}"):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_text(suite)
        (folder / "usr/lib64").mkdir(exist_ok=True)
        if not (folder / "usr/lib64/loader").is_symlink():
            (folder / "usr/lib64/loader").symlink_to("../lib/x86_64-linux-gnu/loader")

    def packed(*wanted: str, **suites: list[str]) -> dict[str, bytes]:
        packages._make(tmp_path / "packages.cpio", suites, {*wanted}, [tmp_path / "below.cpio"])
        data = (tmp_path / "packages.cpio").read_bytes()
        return {name: data[at:at + size] for name, at, size in contents(tmp_path / "packages.cpio")}

    below = Archive()
    below.file("usr/bin/there", "guest")
    (tmp_path / "below.cpio").write_bytes(below.bytes())
    monkeypatch.setattr(debian, "unpack_all", unpack)
    found = packed("b", bookworm=["a=1", "b=1"], forky=["a=2"])
    assert found["usr/bin/a"] == found["lib/x86_64-linux-gnu/liba"] == b"forky"
    assert found["usr/bin/b"] == found["usr/bin/there"] == b"bookworm"
    assert found["lib64/loader"] == b"/lib/x86_64-linux-gnu/loader"
    assert not [name for name in found if "doc" in name]
    assert "usr/bin/there" not in packed("c", bookworm=["a=1"])


def test_a_guest_has_the_packages_that_it_was_given(lab_run: LabRun) -> None:
    result = lab_run("sqlite3 :memory: 'SELECT 6 * 7'", clock="virtual", profile="none", module=False,
                     packages=["sqlite3"])
    assert result.output == "42\n"
    assert lab_run("sqlite3 2>&1 || true", clock="virtual", profile="none", module=False).output.endswith("not found\n")
    with pytest.raises(LabError, match="Unable to locate package no-such-package"):
        lab_run("true", clock="virtual", profile="none", module=False, packages=["no-such-package"])

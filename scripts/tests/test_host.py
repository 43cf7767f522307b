# SPDX-License-Identifier: GPL-2.0
"""The parts' own unit tests, which run on the host through their Makefiles' check goal."""

import re
import subprocess
from pathlib import Path

import pytest
from mtlab.build import debian, guest, kernels, target
from mtlab.cmd import torture
from mtlab.util.base import BUILD, ROOT


def _checked() -> list[str]:
    """Folders whose Makefile has a check goal."""
    makefiles = [p for top in ("target", "emulator") for p in sorted((ROOT / top).rglob("Makefile"))]
    return [str(p.parent.relative_to(ROOT)) for p in makefiles if re.search(r"^check:", p.read_text(), re.M)]


@pytest.mark.parametrize("folder", _checked())
def test_make_check(folder: str, tmp_path: Path) -> None:
    debian.ensure("build", "tool", "test")
    done = subprocess.run(["make", "-s", "-C", ROOT / folder, f"BUILD={BUILD}/host", "check"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_build_names_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another checkout of the same sources builds the same bytes: a guest of one is recalled in the other."""
    kernel = kernels.get(kernels.DEFAULT)
    ours = target.module(kernel), target.tool()
    monkeypatch.setattr(target, "_folder", lambda part: tmp_path / "another/place" / part)
    theirs = target.module.__wrapped__(kernel), target.tool.__wrapped__()
    for one, other in zip(ours, theirs, strict=True):
        assert one and other and one != other and one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("name", [kernels.DEFAULT, "6.1"])
def test_nothing_in_a_guest_names_a_folder_of_the_host(name: str) -> None:
    """Else a guest takes other times if the project lies in a folder whose name is longer."""
    kernel = kernels.get(name)
    for built in (target.module(kernel), target.tool(), torture.program(), torture.fua_module(kernel),
                  torture.linger_module(kernel), guest.tools()):
        assert built and not [place for place in (ROOT, BUILD) if str(place).encode() in built.read_bytes()], built


@pytest.mark.parametrize("there", [
    ("boot/vmlinuz-1", "boot/config-1", "lib/modules/1/kernel/a.ko"),
    ("boot/vmlinuz-1", "boot/config-1", "usr/lib/modules/1/kernel/a.ko"),
    ("usr/lib/modules/1/vmlinuz", "usr/lib/modules/1/config", "usr/lib/modules/1/kernel/a.ko"),
], ids=["Debian 12", "Debian 13", "newer"])
def test_kernels_of_all_layouts_are_found(tmp_path: Path, there: tuple[str, ...]) -> None:
    """Wherever the package has image and modules, they are where the lab looks."""
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(Path(name).name)
    kernels._one_layout(tmp_path, "1")
    assert (tmp_path / "boot/vmlinuz-1").read_text().startswith("vmlinuz")
    assert (tmp_path / "boot/config-1").read_text().startswith("config")
    assert (tmp_path / "lib/modules/1/kernel/a.ko").exists()

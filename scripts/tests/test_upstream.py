# SPDX-License-Identifier: GPL-2.0
"""The series of patches for the kernel: it has all of the module, and the newest checkpatch has nothing to say."""

import re
from pathlib import Path

import pytest
from mtlab.build import kernels, target, upstream
from mtlab.util.base import LabError


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Path]]:
    return upstream.series(tmp_path_factory.mktemp("series"))


def _added(patches: list[Path]) -> list[str]:
    return [name for patch in patches
            for name in re.findall(r"^--- /dev/null\n\+\+\+ b/(\S+)$", patch.read_text(), re.M)]


def test_each_file_of_the_module_is_added_once(series: tuple[str, list[Path]]) -> None:
    names = {str(path.relative_to(target.SOURCE)) for path in target.module_sources()} - set(upstream.DROPPED)
    added = _added(series[1])
    assert sorted(added) == sorted([*(f"{upstream.PLACE}/{name}" for name in names | {"Kconfig", "Makefile"}),
                                    upstream.GUIDE])


def test_what_is_compiled_is_there(series: tuple[str, list[Path]]) -> None:
    """Each object of the Makefile has its source, and each source its object."""
    last = next(patch.read_text() for patch in series[1] if f"b/{upstream.PLACE}/Makefile" in patch.read_text())
    objects = re.findall(r"[\w/]+(?=\.o)", last.partition("dm-mtftl-y := ")[2].partition("ccflags-y")[0])
    sources = [name for name in _added(series[1]) if name.endswith(".c")]
    assert sorted(f"{upstream.PLACE}/{name}.c" for name in objects) == sorted(sources)


def test_nothing_tells_kernels_apart(series: tuple[str, list[Path]]) -> None:
    text = "".join(patch.read_text() for patch in series[1])
    assert not re.search(r"MTFTL_HAS_|compat\.h|probed\.h|__KERNEL__", text)


def test_patches_are_numbered_and_signed(series: tuple[str, list[Path]]) -> None:
    name, address = upstream.identity()
    for number, patch in enumerate(series[1], 1):
        text = patch.read_text()
        assert f"[PATCH RFC {number:02}/{len(series[1])}] dm mtftl: " in text
        assert f"Signed-off-by: {name} <{address}>\n" in text


def test_checkpatch_has_nothing_to_say(series: tuple[str, list[Path]]) -> None:
    assert upstream.checkpatch(*series) == ""


def test_what_older_kernels_lack_may_not_be_left() -> None:
    """A header that the newest kernel uses some of is refused."""
    guarded = '#ifndef MTFTL_COMPAT_H\n#define MTFTL_COMPAT_H\n/* A word. */\n#include <linux/srcu.h>\n{}\n#endif\n'
    assert upstream._left(guarded.format("")) == ""
    assert upstream._left(guarded.format("#define new old")) == "#definenewold"


def test_a_folder_keeps_what_is_no_patch_of_a_series(tmp_path: Path) -> None:
    for name in ("0099-dm-mtftl-old.patch", "mine.patch", "notes"):
        (tmp_path / name).write_text("")
    _, patches = upstream.series(tmp_path)
    kept = {path.name for path in tmp_path.iterdir()} - {path.name for path in patches}
    assert kept == {"0000-cover-letter.patch", "mine.patch", "notes"}


def _built_in(tmp_path: Path, sources: str) -> kernels.Kernel:
    image = tmp_path / "bzImage"
    image.write_text("")
    return kernels.Kernel("7.3-mtftl", image, None, tmp_path, sources)


def test_a_kernel_with_the_target_built_in_loads_no_module(tmp_path: Path) -> None:
    kernel = _built_in(tmp_path, target.for_the_kernel())
    assert target.module(kernel) is None
    with pytest.raises(LabError, match="expected a kernel that loads it"):
        target.need_module(kernel)


def test_a_kernel_with_other_sources_built_in_is_refused(tmp_path: Path) -> None:
    """A guest of it would show nothing of these."""
    with pytest.raises(LabError, match="another version of the target"):
        target.module(_built_in(tmp_path, "other"))


def test_such_a_kernel_has_to_be_built_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "BUILT_IN", tmp_path)
    with pytest.raises(LabError, match="lab upstream --build"):
        kernels.get(kernels.UPSTREAM)

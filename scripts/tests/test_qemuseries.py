# SPDX-License-Identifier: GPL-2.0
"""The series of patches for QEMU: they apply, have all that the lab builds, and together are what the lab builds.

Where a source tree of QEMU is not there, its tests are skipped; the texts for it are tested all the same.
"""

import re
import subprocess
from pathlib import Path

import pytest
from mtlab.build import emulator, qemuseries, upstream
from mtlab.util.base import LabError

TREES = {"lab": emulator.HOME / "source-debian", "newest": qemuseries.newest_folder()}
Made = tuple[qemuseries.Tree, dict[str, list[Path]]]


@pytest.fixture(scope="module", params=TREES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    if not TREES[request.param].exists():
        pytest.skip(f"needs {TREES[request.param]}: `scripts/lab upstream --qemu {request.param}` fetches it")
    tree = qemuseries.Tree(TREES[request.param])
    if not tree.known:
        pytest.skip(f"the series have not been brought to QEMU {tree.version} yet")
    return tree, qemuseries.series(tree, tmp_path_factory.mktemp(request.param))


def _added(patches: list[Path]) -> list[str]:
    return [name for patch in patches
            for name in re.findall(r"^--- /dev/null\n\+\+\+ b/(\S+)$", patch.read_text(), re.M)]


def test_each_file_is_added_once(made: Made) -> None:
    texts = [str(p.relative_to(qemuseries.TEXTS / "tree")) for p in (qemuseries.TEXTS / "tree").rglob("*.*")]
    assert sorted(_added([*made[1]["clock"], *made[1]["flash"]])) == sorted([*qemuseries.ours(), *texts])


def test_patches_are_signed(made: Made) -> None:
    name, address = upstream.identity()
    for patches in made[1].values():
        for patch in patches:
            text = patch.read_text()
            assert re.search(r"^Subject: \[RFC PATCH", text, re.M)
            assert f"Signed-off-by: {name} <{address}>\n" in text


def test_the_flash_drive_knows_nothing_of_lockstep(made: Made) -> None:
    """Each series is for other maintainers, and is taken or refused alone."""
    assert "lockstep" not in "".join(patch.read_text() for patch in made[1]["flash"])


def test_checkpatch_says_what_is_known_only(made: Made) -> None:
    tree, patches = made
    said = [qemuseries.checkpatch(tree, patches[name])[0] for name in qemuseries.NAMES]
    assert said == [""] * len(said)


def test_checkpatch_would_say_more(made: Made, tmp_path: Path) -> None:
    bad = tmp_path / "0001-bad.patch"
    bad.write_text(made[1]["join"][0].read_text().replace("\n+    return icount", "\n+\treturn icount"))
    assert "code indent" in qemuseries.checkpatch(made[0], [bad])[0]


def test_together_they_are_what_the_lab_builds(made: Made, tmp_path: Path) -> None:
    """To the byte, except for the patches that no series has."""
    tree, patches = made
    if tree.port:
        pytest.skip("the lab builds another release")
    names = set(qemuseries.ours())
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for place in (ours, theirs):
        place.mkdir()
        qemuseries.Repository(place, tree)
    qemuseries.apply(ours, patches)
    for name in names:
        (theirs / name).parent.mkdir(parents=True, exist_ok=True)
        (theirs / name).write_bytes((emulator.OURS / name).read_bytes())
    for patch in emulator.series():
        if patch.name[:4] not in qemuseries.LEFT_OUT:
            names |= set(re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.M))
            subprocess.run(["patch", "-p1", "-s", "-f", "-i", patch], cwd=theirs, check=True)
    assert [name for name in sorted(names) if (ours / name).read_text() != (theirs / name).read_text()] == []


def test_a_repository_is_not_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook of git tells its children which index and work tree to use."""
    tree, place, callers = (tmp_path / name for name in ("tree", "place", "callers"))
    for folder in (tree, place, callers):
        folder.mkdir()
    (tree / "VERSION").write_text("10.0.0\n")
    (tree / "MAINTAINERS").write_text("nobody\n")
    (callers / "theirs").write_text("")
    monkeypatch.setenv("GIT_INDEX_FILE", str(callers / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(callers))
    repository = qemuseries.Repository(place, qemuseries.Tree(tree))
    assert repository.git("ls-tree", "--name-only", "base") == "MAINTAINERS\n"
    assert not (callers / "index").exists()


@pytest.mark.parametrize("version, known", [("10.0.13", True), ("10.1.0", False), ("10.2.2", True), ("11.0.0", False)])
def test_a_release_is_known_if_the_series_were_brought_to_it(tmp_path: Path, version: str, known: bool) -> None:
    (tmp_path / "VERSION").write_text(f"{version}\n")
    assert qemuseries.Tree(tmp_path).known == known


def test_no_patch_is_forgotten() -> None:
    taken = {wanted.partition(":")[0] for commit in (*qemuseries.CLOCK, *qemuseries.FLASH) for wanted in commit.patches}
    assert not taken & set(qemuseries.LEFT_OUT)
    assert sorted(taken | set(qemuseries.LEFT_OUT)) == sorted(path.name[:4] for path in emulator.series())


@pytest.mark.parametrize("release", ["10.0.0", *(f"{port}.0" for port in qemuseries.PORTS)])
@pytest.mark.parametrize("alone", [False, True])
def test_changes_for_a_release_apply(tmp_path: Path, release: str, alone: bool) -> None:
    """A file or patch of ours has changed where a release needs it to be another one: change emulator/upstream."""
    (tmp_path / "VERSION").write_text(f"{release}\n")
    version = qemuseries.Version(qemuseries.Tree(tmp_path), alone)
    for name in (*qemuseries.ours(), *(f"patches/{path.name}" for path in emulator.series())):
        assert version.text(name)


def test_no_change_for_a_release_is_forgotten() -> None:
    """Each is of a file or patch that exists."""
    for layer in ("alone", *qemuseries.PORTS):
        for path in (qemuseries.TEXTS / layer).rglob("*.*"):
            name = path.relative_to(qemuseries.TEXTS / layer)
            if path.is_file() and name.parts[0] != "before":
                assert (emulator.OURS / str(name).removesuffix(".diff")).is_file(), name


def test_what_does_not_apply_is_said(tmp_path: Path) -> None:
    (tmp_path / "hook.diff").write_text("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n")
    with pytest.raises(LabError, match="does not apply"):
        qemuseries._patched("another\n", tmp_path / "hook.diff")


def test_a_context_that_differs_is_not_passed_over(tmp_path: Path) -> None:
    """By its default, patch takes a hunk of which one line in three is known."""
    (tmp_path / "hook.diff").write_text("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n before\n-old\n+new\n after\n")
    assert qemuseries._patched("before\nold\nafter\n", tmp_path / "hook.diff") == "before\nnew\nafter\n"
    with pytest.raises(LabError, match="does not apply"):
        qemuseries._patched("others\nold\nafter\n", tmp_path / "hook.diff")


def test_the_firmware_is_its_source(tmp_path: Path) -> None:
    """The qtest of lockstep time has the code of icount-lockstep-bios.S."""
    folder = qemuseries.TEXTS / "tree/tests/qtest"
    subprocess.run(["gcc", "-m32", "-c", "-o", tmp_path / "bios.o", folder / "icount-lockstep-bios.S"], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", tmp_path / "bios.o", tmp_path / "bios.bin"], check=True)
    listed = re.findall(r"0x([0-9a-f]{2}),", (folder / "icount-lockstep-bios.h").read_text())
    assert bytes.fromhex("".join(listed)) == (tmp_path / "bios.bin").read_bytes()

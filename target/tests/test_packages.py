# SPDX-License-Identifier: GPL-2.0
"""The packages: what they hold, what lintian and rpmlint say, and their life in a clean Debian; the completions.

A clean Debian 12 and 13 are made once, by target/tests/packages/make-root, since that takes a network and a root;
without them these tests are skipped.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mtlab.build import debian, target
from mtlab.util.base import BUILD

HERE = Path(__file__).resolve().parent
PACKAGING = target.SOURCE / "packaging"
# The project has no mail address, and says so.
NO_ADDRESS = "bogus-mail-host,bogus-mail-host-in-debian-changelog"
RELEASES = ("bookworm", "trixie")


def run(*command: str | Path) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    debian.ensure("tool", "deb")
    folder = tmp_path_factory.mktemp("deb")
    run(PACKAGING / "build-deb", folder)
    return folder


def test_lintian_is_content(debs: Path) -> None:
    changes, = debs.glob("*.changes")
    said = run("lintian", "--allow-root", "--fail-on", "error,warning,info,pedantic", "-I", "--pedantic",
               "--suppress-tags", NO_ADDRESS, changes)
    assert not said.strip(), said


def test_one_version() -> None:
    """What DKMS, Debian and the spec call the version is the same."""
    dkms = re.search(r'^PACKAGE_VERSION="(.*)"', (target.SOURCE / "dkms.conf").read_text(), re.M)
    changelog = re.match(r"dm-mtftl \((.*?)\)", (PACKAGING / "debian/changelog").read_text())
    spec = re.search(r"^%changelog\n\* .* - (.*)-1$", (PACKAGING / "rpm/dm-mtftl.spec").read_text(), re.M)
    assert dkms and changelog and spec
    assert dkms[1] == changelog[1] == spec[1]


def test_rpm(tmp_path: Path) -> None:
    debian.ensure("tool", "rpm")
    run(PACKAGING / "build-rpm", tmp_path, "--nodeps")
    packages = sorted(tmp_path.glob("*RPMS/**/*.rpm"))
    assert [p.name.split("-1.")[0] for p in packages] == ["dm-mtftl-dkms", "mtftl-tools", "dm-mtftl"]
    said = run("rpmlint", "-c", PACKAGING / "rpm/rpmlint.toml", *packages)
    assert "0 errors, 0 warnings" in said, said


def test_every_source_is_in_the_package(debs: Path) -> None:
    """What Kbuild compiles, and the headers that it includes, are where DKMS looks for them."""
    deb, = debs.glob("dm-mtftl-dkms_*.deb")
    listed = run("dpkg-deb", "-c", deb)
    there = set(re.findall(r" \./usr/src/dm-mtftl-[^/]*/(\S+[^/\s])$", listed, re.M))
    objects = re.search(r"^dm-mtftl-y := ((?:.*\\\n)*.*)$", (target.SOURCE / "Kbuild").read_text(), re.M)
    assert objects
    wanted = {name.removesuffix(".o") + ".c" for name in objects[1].split() if name != "\\"}
    wanted |= {"Kbuild", "dkms.conf", "device/probe.c"}
    for name in sorted(wanted):
        for header in re.findall(r'^#include "([^"]+)"', (target.SOURCE / name).read_text(), re.M):
            wanted |= {header} if (target.SOURCE / header).exists() else set()
    assert wanted <= there, wanted - there


def test_completions_know_all_commands() -> None:
    """Both list the commands that the tool has, in its order of letters."""
    there = sorted(set(re.findall(r"^\t\{ \"([\w-]+)\", cmd_", (target.SOURCE / "tool/mtftl.c").read_text(), re.M)) |
                   {"help"})
    bash = (PACKAGING / "completions/mtftl.bash").read_text()
    assert re.findall(r'compgen -W "([a-z -]+)"', bash) == [" ".join(there)]
    assert re.findall(r"^\t\t'([\w-]+):", (PACKAGING / "completions/_mtftl").read_text(), re.M) == there


def complete(*words: str) -> list[str]:
    script = f"""source {PACKAGING}/completions/mtftl.bash
compopt() {{ :; }}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mtftl; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return run("bash", "-c", script, "bash", *words).split()


def test_bash_completes() -> None:
    assert complete("mtftl", "st") == ["status"]
    assert complete("mtftl", "status", "--j") == ["--json"]
    assert complete("mtftl", "format", "--headers", "b") == ["blocks"]
    assert complete("mtftl", "open", "/dev/nvme0n1", "fast", "la") == ["lanes="]


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_takes_the_file() -> None:
    run("zsh", "-n", PACKAGING / "completions/_mtftl")


@pytest.mark.parametrize("release", RELEASES)
def test_life_of_the_packages(release: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Built, installed, used by updates of the kernel, upgraded and purged in a clean Debian: nothing is left."""
    if request.config.getoption("no_guest"):
        pytest.skip("two minutes of a processor: not for make check")
    root = BUILD / "roots" / release
    if os.geteuid() or not root.with_suffix(".done").exists():
        pytest.skip(f"no clean {release}: target/tests/packages/make-root {release} {BUILD}, as root")
    run(PACKAGING / "source-tree", tmp_path / "sources")
    said = run(HERE / "packages/in-root", root, tmp_path / "sources", HERE / "packages/life")
    steps = [line[2:] for line in said.splitlines() if line.startswith("@ ")]
    kernel, = (re.escape(p.name) for p in (root / "usr/lib/modules").iterdir())
    # DKMS needs it, and that of Debian 12 does not bring it.
    signer = "DKMS module signing key" if (root / "usr/bin/openssl").exists() else ""
    parts = ["62-mtftl", "dm-mtftl", "mtftl", "mtftl", "mtftltab"]
    wanted = [f"installed: dm-mtftl/1.0, {kernel}, x86_64: installed", "tool: usage: mtftl format .*",
              f"module: {kernel} .*", f"signed: {signer}", "udev: 0", "kept /usr/sbin/mtftl",
              "kept /shutdown", f"refused: mtftl: no module dm-mtftl for {kernel}, .*"]
    for update in ("image", "headers", "upgrade"):
        # Without a line in the tab the hook brings the script only.
        wanted += ["nothing has mtftl"] if update == "headers" else []
        wanted += [f"upgraded: dm-mtftl/1.1, {kernel}, x86_64: installed"] if update == "upgrade" else []
        wanted += [f"{update} has {part}" for part in parts]
    wanted += ["purged: ", "end"]
    if "udev: 0" not in steps:          # Debian 12's udevadm cannot verify
        wanted.remove("udev: 0")
    assert len(steps) == len(wanted) and all(map(re.fullmatch, wanted, steps)), said

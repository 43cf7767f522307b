# SPDX-License-Identifier: GPL-2.0
"""Manual pages and completions of mtftl(8) have each command and option that the tool itself prints."""

import re
import subprocess
from pathlib import Path

import pytest
from mtlab.build import target

COMPLETIONS = target.SOURCE / "packaging/completions"
USAGE = {name: set(re.findall(r"--[\w-]+", words)) for name, words in
         re.findall(r'^\t\{ "([\w-]+)", cmd_\w+, "([^"]*)"', (target.SOURCE / "tool/mtftl.c").read_text(), re.M)}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of each command."""
    folder = tmp_path_factory.mktemp("pages")
    subprocess.run(["make", "-s", "-C", target.SOURCE, "man", f"MAN={folder}"], check=True)
    return folder


def test_each_command_has_a_page(pages: Path) -> None:
    assert {page.name for page in pages.iterdir()} == {f"mtftl-{name}.8" for name in USAGE}
    for name, options in USAGE.items():
        text = (pages / f"mtftl-{name}.8").read_text().replace("\\-", "-")
        synopsis, description = re.search(r"\.SH SYNOPSIS\n(.*)\.SH DESCRIPTION\n(.*)\.SH EXIT", text, re.S).groups()
        assert synopsis.startswith(f".B mtftl {name}\n"), name
        assert set(re.findall(r"--[\w-]+", synopsis)) == options, name
        assert set(re.findall(r"^\.B[IR]? (--[\w-]+)", description, re.M)) == options, name
        assert re.search(rf"^mtftl-{name} - [a-z][^.\n]+$", text, re.M), name


def test_pages_are_well_formed(pages: Path) -> None:
    for page in [*sorted(pages.iterdir()), *sorted((target.SOURCE / "tool").glob("*.[58]"))]:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr


def _offered(*words: str) -> list[str]:
    script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mtftl; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script, COMPLETIONS / "mtftl.bash", *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.split()


def test_bash_completes_commands_and_options() -> None:
    assert set(_offered("mtftl", "")) == {*USAGE, "help"}
    for name, options in USAGE.items():
        assert {word for word in _offered("mtftl", name, "-") if word.startswith("-")} == options, name


def test_zsh_completes_commands_and_options() -> None:
    text = (COMPLETIONS / "_mtftl").read_text()
    assert set(re.findall(r"^\t\t'([\w-]+):", text, re.M)) == {*USAGE, "help"}
    cases = dict(re.findall(r"^\t([\w-]+)\)\s+(.*?);;", text, re.M | re.S))
    for name, options in USAGE.items():
        assert set(re.findall(r"'(--[\w-]+)", cases.get(name, ""))) == options, name

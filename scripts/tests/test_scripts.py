# SPDX-License-Identifier: GPL-2.0
"""Tests that are shell scripts: what their headers may say, and that none of ours is left out."""

import re
import subprocess
from pathlib import Path

import pytest
from mtlab.run import collect, scripts
from mtlab.run.outcome import Result
from mtlab.util.base import ROOT, LabError

GUEST = ROOT / "target/tests/guest"
HEADER = """#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Something is shown,
# in two lines.
#
# clock: virtual
# cpus: 4
# profile: tlc
"""


def _script(folder: Path, more: str = "", body: str = "echo body\n", head: str = HEADER) -> Path:
    path = folder / "a.sh"
    path.write_text(f"{head}{more}\n{body}")
    return path


def test_a_header_gives_options_and_cases(tmp_path: Path) -> None:
    (tmp_path / "drives").write_text("[small]\nflash.size = 8M\nx = 1\n[slow]\nlike = small\nx = 2\n")
    found = scripts.parse(_script(tmp_path, "# device: slow y=3\n# timeout: 7\n# pull: a b\n# kernels: 6.1 6.12\n"
                                  "# cases: one two\n# needs: hold\n# judge: test_b.py\n"))
    assert found.shows == "Something is shown, in two lines."
    assert found.options == {"clock": "virtual", "cpus": 4, "profile": "tlc", "timeout": 7.0, "pull": ["a", "b"],
                             "device": {"flash.size": "8M", "x": "2", "y": "3"}}
    assert (found.kernels, found.cases, found.needs, found.judge) == (("6.1", "6.12"), ("one", "two"), ("hold",),
                                                                      "test_b.py")
    assert found.body == "echo body\n"
    assert scripts.command(found, ["a b"]) == "set -- 'a b'\necho body\n"


WRONG = [
    (HEADER, "# colour: blue\n", "no field 'colour': there are kernel, clock"),
    (HEADER, "# cpus: 2\n", "field 'cpus' is there twice"),
    (HEADER, "# cpus_: many\n", "no field 'cpus_'"),
    (HEADER.replace("4", "many"), "", "invalid literal"),
    (HEADER, "# push: file\n", "field 'push': a header cannot give it"),
    (HEADER, "# device: huge\n", "device huge: expected KEY=VALUE or one of "),
    (HEADER.replace("# clock: virtual\n", ""), "", "the header has no clock"),
    (HEADER.replace("# Something is shown,\n# in two lines.\n", ""), "", "does not say what the test shows"),
    (HEADER.replace("bash", "sh"), "", "expected #!/bin/bash"),
]


@pytest.mark.parametrize(("head", "more", "said"), WRONG, ids=[said for _, _, said in WRONG])
def test_a_header_that_is_wrong_is_refused(tmp_path: Path, head: str, more: str, said: str) -> None:
    with pytest.raises(LabError, match=f"a.sh: .*{re.escape(said)}"):
        scripts.parse(_script(tmp_path, more, head=head))


def test_a_script_runs_as_its_header_says(tmp_path: Path) -> None:
    """What the caller gives comes first; of a drive it may replace single properties."""
    (tmp_path / "drives").write_text("")
    _script(tmp_path, "# device: x=1 y=2\n# needs: module\n")
    ran = {}

    class Request:
        def getfixturevalue(self, name: str) -> list[Path]:
            return [Path(name)]

    def lab_run(command: str, **options: object) -> Result:
        ran.update(options, command=command)
        return Result(0, None, "", "", {}, 1.0, "", "", "")

    collect.run(tmp_path, Request(), lab_run, [Path("guest.sh")], "a", "word", push=[Path("f")], device={"y": "3"},
                cpus=1)
    assert ran == {"command": "set -- word\necho body\n", "clock": "virtual", "cpus": 1, "profile": "tlc",
                   "device": {"x": "1", "y": "3"}, "push": [Path("guest.sh"), Path("module"), Path("f")]}


SILENT = """set -e
. ./guest.sh
fails false
is_there() { test -e "$1"; }
is_there nothing || true
has=$(is_there nothing; echo no)
is_there nothing &
fails wait $!
look() {
	is_there "$1"
}
look nothing
"""
NAMED = """failed with status 1:
  main: look nothing
  look: is_there "$1"
  is_there: is_there() { test -e "$1"; }
"""


@pytest.mark.parametrize(("last", "said"), [
    ("", NAMED), ("fails true\n", "failed with status 1:\n  main: fails true\n"), ("exit 3\n", "")],
    ids=["function", "fails", "exit"])
def test_a_command_that_ends_a_test_is_named(tmp_path: Path, last: str, said: str) -> None:
    """With the lines that led to it; commands that may fail are not."""
    script = tmp_path / "script"
    script.write_text(SILENT.replace("look nothing\n", last or "look nothing\n"))
    done = subprocess.run(["bash", script], cwd=GUEST.parent, capture_output=True, text=True)
    assert (bool(done.returncode), done.stdout, done.stderr) == (True, "", said)


def test_every_script_of_the_target_is_run_by_somebody() -> None:
    """By itself, or by the Python file that judges it, which runs no other."""
    judged: dict[str, set[str]] = {}
    for path in sorted(GUEST.glob("*.sh")):
        script = scripts.parse(path)
        assert script.body.startswith("set -e\n. ./guest.sh\n"), path
        assert re.fullmatch(r"[a-z0-9_]+", path.stem), path
        if script.judge:
            judged.setdefault(script.judge, set()).add(path.stem)
    assert sum(map(len, judged.values())) < len([*GUEST.glob("*.sh")])
    for file in sorted(GUEST.parent.glob("test_*.py")):
        names = set(re.findall(r'"(\w+)"', file.read_text())) & {path.stem for path in GUEST.glob("*.sh")}
        assert names == judged.pop(file.name, set()), file
    assert not judged


def test_tests_are_found_by_their_folder(request: pytest.FixtureRequest) -> None:
    """`make test K=scripts/tests`, whatever pytest's version makes of a path."""
    assert "scripts/tests/test_scripts.py" in request.node.listextrakeywords()

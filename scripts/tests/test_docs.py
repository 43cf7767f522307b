# SPDX-License-Identifier: GPL-2.0
"""What the docs name exists, and what exists is in the docs: options, counters, messages, statuses, commands."""

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mtlab.build import kernels, target
from mtlab.cmd import cli, drives, properties, prose, reference, tested
from mtlab.exp import experiments
from mtlab.run import failure
from mtlab.util.base import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md")),
         *sorted((ROOT / "results").glob("**/*.md"))]
TARGET = ROOT / "target"


def _table(page: str, head: str) -> Iterator[list[str]]:
    """The rows of the first table of a page that begins with this head."""
    lines = (ROOT / page).read_text().split(f"\n{head}")[1].splitlines()[2:]
    for line in lines:
        if not line.startswith("|"):
            break
        yield [cell.strip() for cell in line.strip("|").split("|")]


def _named(page: str, head: str) -> set[str]:
    """The names, set as code, in the first column of a table."""
    return {re.split(r"[ <]", name)[0] for row in _table(page, head) for name in re.findall(r"`([^`]+)`", row[0])}


def _code() -> Iterator[tuple[Path, str]]:
    """Code in the pages: indented lines and spans."""
    for page in PAGES:
        text = page.read_text()
        for code in [*re.findall(r"^(?: {4}|\t)(.*)$", text, re.M), *re.findall(r"`([^`]+)`", text)]:
            yield page, code


def test_options_of_the_table_line() -> None:
    source = (TARGET / "device/options.c").read_text()
    parsed = set(re.findall(r'\.name = "(\w+)"', source))
    assert _named("docs/use/options.md", "| option | default | |") == parsed
    manual = (TARGET / "tool/mtftl.8").read_text()
    assert [option for option in parsed if not re.search(rf"^\.(BR|BI) {option} ?=", manual, re.M)] == []


def test_values_of_options() -> None:
    rows = {row[0].strip("`"): " ".join(row[1:]) for row in _table("docs/use/options.md", "| option | default | |")}
    manual = (TARGET / "tool/mtftl.8").read_text().replace("\\", "")
    for option, file in (("placement", "placement.c"), ("gc_policy", "victim.c")):
        names = re.findall(r'^\t\{ "([\w-]+)",', (TARGET / "policy" / file).read_text(), re.M)
        assert names and set(names) <= set(re.findall(r"`([^`]+)`", rows[option]))
        line = re.search(rf"^\.BR {option} = (.*)$", manual, re.M)
        assert line and set(names) == set(line[1].split(" | "))


def _options_of_the_tool() -> dict[str, set[str]]:
    """By command, what its getopt_long() takes: a table is of its file's command, or of the one above it."""
    found: dict[str, set[str]] = {}
    for path in sorted((TARGET / "tool").glob("*.c")):
        text = path.read_text()
        commands = [(m.start(), m[1].replace("_", "-")) for m in re.finditer(r"^int cmd_(\w+)\(", text, re.M)]
        found |= {name: set() for _, name in commands}
        for table in re.finditer(r"struct option options\[\] = \{(.*?)\};", text, re.S):
            above = [name for at, name in commands if at < table.start()]
            found[above[-1] if above else commands[0][1]] |= {
                f"--{name}" for name in re.findall(r'\{ "([\w-]+)"', table[1])}
    return found


def test_options_of_the_tool() -> None:
    """By command: in the manual, in what the tool prints, in the pages."""
    taken = _options_of_the_tool()
    assert len(taken) > 6 and set.union(*taken.values())
    manual = (TARGET / "tool/mtftl.8").read_text().replace("\\-", "-")
    manual = manual.split(".SH COMMANDS")[1].split(".SH EXIT")[0]
    sections = re.findall(r"^\.B ([\w-]+)$(.*?)(?=^\.TP\n\.B \w[\w-]+$|\Z)", manual, re.M | re.S)
    assert {name: set(re.findall(r"^\.B[IR]? (--[\w-]+)", text, re.M)) for name, text in sections} == taken
    usage = (TARGET / "tool/mtftl.c").read_text()
    printed = {name: set(re.findall(r"--[\w-]+", words)) for name, words in
               re.findall(r'^\t\{ "([\w-]+)", cmd_\w+, "([^"]*)"', usage, re.M)}
    assert printed == taken
    used = {(page.name, name, flag) for page, code in _code()
            for name, words in re.findall(r"\bmtftl (\w[\w-]+)((?: --?[\w-]+)+)", code)
            for flag in re.findall(r"--[\w-]+", words)}
    assert used and {one for one in used if one[2] not in taken.get(one[1], set())} == set()


def test_names_of_the_status_line() -> None:
    source = (TARGET / "dm/stats.c").read_text()
    formats = " ".join(re.findall(r'DMEMIT\("([^"]*)"', source))
    names = set(re.findall(r"\b([a-z_]+) %", formats)) | set(re.findall(r"\b(fill) ", formats))
    assert _named("docs/use/status.md", "| name | |") == names


def test_states_are_those_that_are_shown() -> None:
    """A state begins with a name of the status line, or has the words of `mtftl status`; both are in the code."""
    names = _named("docs/use/status.md", "| name | |")
    code = "".join((TARGET / name).read_text() for name in ("tool/status.c", "tool/health.c", "dm/stats.c"))
    words = names | {word for said in re.findall(r'"([^"]*)"', code) for word in re.findall(r"[a-z_]+", said)}
    rows = [*_table("docs/use/status.md", "| you see | what it means, and what to do |")]
    states = {state for row in rows for state in re.findall(r"`([^`]+)`", row[0])} - {"mtftl status"}
    assert len(states) > 10
    assert [state for state in states if not set(re.findall(r"[a-z_]+", state)) <= words] == []


def test_messages() -> None:
    source = (TARGET / "dm/stats.c").read_text()
    known = set(re.findall(r'strcmp\(argv\[0\], "(\w+)"\)', source)) | set(re.findall(r'^\t\{ "(\w+)",', source, re.M))
    assert _named("docs/use/status.md", "| message | |") == known


def test_tracepoints() -> None:
    defined = set(re.findall(r"^(?:TRACE|DEFINE)_EVENT\((?:\w+, )?(mtftl_\w+)", (TARGET / "device/trace.h").read_text(),
                             re.M))
    said = (ROOT / "docs/use/status.md").read_text().split("Tracepoints (")[1].split(". ")[0]
    assert set(re.findall(r"`(mtftl_\w+)`", said)) == defined


def _said(text: str) -> str:
    """A format string as the docs write it: N for a number, X for a word."""
    return re.sub(r"%#?[0-9.]*(?:ll|l|z)?([a-z])", lambda m: "X" if m[1] == "s" else "N", text)


def _complaints_of_the_module() -> set[str]:
    """What it says in the kernel's log, or to dmsetup, when something is wrong."""
    found = set()
    calls = r"\b(?:mtftl_err|mtftl_warn|mtftl_warn_limit|mtftl_set_read_only|DMERR)\(((?:[^;\"]|\"[^\"]*\")*)\);"
    for path in target.module_sources():
        text = path.read_text()
        found |= {"".join(re.findall(r'"([^"]*)"', call)) for call in re.findall(calls, text)}
        found |= set(re.findall(r'error = [^";]*"([^"]*)"', text)) | set(re.findall(r'error = [^;]*: "([^"]*)";', text))
        found |= set(re.findall(r'^\t\[MTFTL_RIGHT_\w+\] = "([^"]* [^"]*)",$', text, re.M))
    return {_said(text) for text in found - {"", "read-only: %s"}}


def test_each_complaint_says_what_to_do() -> None:
    page = (ROOT / "docs/use/troubleshooting.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert {message for row in rows for message in re.findall(r"`([^`]+)`", row)} == _complaints_of_the_module()


def test_properties_of_the_flash_drive() -> None:
    text = (ROOT / "docs/emulator/properties.md").read_text()
    assert properties.update_page(text) == text, "scripts/lab report --readme brings it up to date"
    declared = re.findall(r"^    (?:FIXED|CHUNK|DRIVE|LIVE)\(", properties.SOURCE.read_text(), re.M)
    assert len(properties.rows()) == len(declared) > 50
    known = {name for name, *_ in properties.rows()} | {"flash.stats", "flash.fault"}
    used = {(page.name, name) for page, code in _code()
            for name in re.findall(r"(?<![\w.])(flash\.[a-z_]+)\b(?!\.|/)", code)}
    assert {one for one in used if one[1] not in known and not re.search(r"\.(c|h|img)$", one[1])} == set()


def _linked(page: Path) -> dict[Path, set[str]]:
    """The pages to which a page leads, each with the anchors that are named."""
    found: dict[Path, set[str]] = {}
    for link, anchor in re.findall(r"\]\(([\w./-]+\.md)?(?:#([\w-]+))?\)", page.read_text()):
        found.setdefault((page.parent / link).resolve() if link else page, set()).add(anchor)
    return found


def test_questions_are_answered_within_two_links() -> None:
    """Of the README, and by a page other than the one of questions."""
    questions = ROOT / "docs/questions.md"
    first = {page for page in _linked(ROOT / "README.md") if page.suffix == ".md"} - {questions}
    near = {ROOT / "README.md", *first, *(page for one in first for page in _linked(one))} - {questions}
    rows = [line.strip("|").split("|") for line in questions.read_text().splitlines() if line.startswith("| ")]
    asked = [(question.strip(), where.strip(), answer) for question, where, answer in rows if question != " question "]
    assert len(asked) >= 30 and len({question for question, *_ in asked}) == len(asked)
    for question, where, answer in asked:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+ #\d+(, ([\w.-]+/[\w.-]+ )?#\d+)*", where), question
        links = re.findall(r"\]\(([\w./-]+\.md)#([\w-]+)\)", answer)
        assert links, f"{question} has no answer with a page and a heading"
        for link, anchor in links:
            page = (questions.parent / link).resolve()
            assert page in near, f"{question}: {link} is more than two links away from README.md"
            assert anchor in prose.anchors(page.read_text()), f"{question}: {link} has no heading {anchor}"


def test_what_the_guest_tests_show() -> None:
    text = (ROOT / "docs/lab/tested.md").read_text()
    assert tested.update_page(text) == text, "scripts/lab report --readme brings it up to date"
    assert all(tested.by_kernel()[series] for series in kernels.SERIES)


def test_drives_that_work_and_that_are_refused() -> None:
    """Each row has tests; a drive that is refused has a message, and all but one kind a test that expects it."""
    page = (ROOT / "docs/use/drives.md").read_text()
    assert drives.update_page(page) == page, "scripts/lab report --readme brings it up to date"
    assert [kind.words for kind in drives.KINDS
            if not any(any(map(kind.has, ours)) for ours in drives.of_tests().values())] == []
    code = "".join(path.read_text() for path in [*target.module_sources(), *(TARGET / "tool").glob("*.c")])
    assert [what for what, said, _ in drives.REFUSED if said not in code] == []
    assert [what.split()[0] for what, names in drives.refusals().items() if not names] == ["host-aware"]


def test_commands_of_the_lab() -> None:
    """Their page is as the parser is, every word is explained, and pages use no option that a command does not have."""
    text = (ROOT / "docs/lab/commands.md").read_text()
    assert cli.update_commands(text) == text, "scripts/lab report --readme brings it up to date"
    assert re.findall(r"^\| `.*` \|  \|$", text, re.M) == []
    of = {name: reference.flags(parser) for name, parser in reference.parsers(cli._parser()).items()}
    assert set(of) == {name for names in cli.GROUPS.values() for name in names}
    used = {(page.name, name, flag) for page, code in _code()
            for name, words in re.findall(r"\blab ([a-z]\w*)((?: (?!-- )[^'|]*)?)", code)
            for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", words.split(" -- ")[0])}
    assert len(used) > 20
    assert {one for one in used if one[2] not in of[one[1]]} == set()


def test_variables_of_make() -> None:
    """Those that its head lists are those that it uses, and pages use no other."""
    makefile = (ROOT / "Makefile").read_text()
    head = makefile.split("\nBUILD")[0]
    known = {name for line in re.findall(r"^#   (.*?)  ", head, re.M) for name in re.findall(r"([A-Z_]+)=", line)}
    exported = re.findall(r"^export ([A-Z_ ]+)$", makefile, re.M)[0].split()
    taken = {*exported, *re.findall(r"\$\(([A-Z]+)\)", makefile)} - {"PYTHON", "LAB", "MAKE"}
    assert taken == known
    used = {(page.name, name) for page, code in _code() if (words := re.search(r"(?:^|sudo )make (?!-C)(.*)", code))
            for name in re.findall(r"\b([A-Z_]+)=", words[1].split("#")[0])}
    assert {name for _, name in used} and {one for one in used if one[1] not in known} == set()


def test_packages_that_packages_need() -> None:
    """What `make deb` builds with is what docs/use/install.md has installed for it."""
    control = (TARGET / "packaging/debian/control").read_text()
    needed = re.findall(r"[\w-]+(?= \(|,|\n)", control.split("Build-Depends:")[1].split("\nStandards")[0] + "\n")
    providers = {"debhelper-compat": "debhelper", "dh-sequence-dkms": "dh-dkms"}
    page = (ROOT / "docs/use/install.md").read_text().split("    make deb")[0]
    installed = page.split("sudo apt install")[-1].replace("\\", " ").split()
    assert sorted(installed) == sorted(["build-essential", *(providers.get(name, name) for name in needed)])


def test_exit_statuses_that_pages_name() -> None:
    named = {(page.name, int(status)) for page in PAGES
             for status in re.findall(r"exit status (\d\d\d)", page.read_text())}
    assert named and {status for _, status in named} <= {status for status, _ in failure.KINDS.values()}


def test_exit_statuses_of_the_lab() -> None:
    rows = {row[1]: int(row[0]) for row in _table("docs/lab/guests.md", "| status | kind | what happened |")}
    assert rows == {kind: status for kind, (status, _) in failure.KINDS.items()}


def test_exit_statuses_of_the_tool() -> None:
    header = (TARGET / "tool/mtftl.h").read_text()
    manual = (TARGET / "tool/mtftl.8").read_text().split(".SH EXIT STATUS")[1].split(".SH")[0]
    assert set(re.findall(r"^\.B (\d+)$", manual, re.M)) == set(re.findall(r"EXIT_\w+\s*= (\d+)", header))


@pytest.mark.parametrize(("command", "known"), [
    (r"(?:^|[ (])scripts/lab ([a-z]\w*)", lambda: {name for names in cli.GROUPS.values() for name in names}),
    (r"^(?:sudo )?make ([a-z]\w*)", lambda: set(re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(),
                                                           re.M)[0].split())),
    (r"(?:^|; |&& |sudo )mtftl ([a-z][\w-]*)", lambda: set(re.findall(r'^\t\{ "([\w-]+)", cmd_',
                                                                  (TARGET / "tool/mtftl.c").read_text(), re.M))),
], ids=["lab", "make", "mtftl"])
def test_commands(command: str, known: Callable[[], set[str]]) -> None:
    names = known()
    used = {(page.name, name) for page, code in _code() for name in re.findall(command, code)}
    assert names & {name for _, name in used}
    assert {(page, name) for page, name in used if name not in names} == set()


def test_the_smallest_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's example is loaded, judges what a guest would give, and draws."""
    text = (ROOT / "docs/lab/experiments.md").read_text().split("`read_size.py`:\n")[1]
    code = re.match(r"\n((?: {4}.*)?\n)+", text)
    assert code
    (tmp_path / "read_size.py").write_text(textwrap.dedent(code[0]))
    monkeypatch.setattr(experiments, "FOLDER", tmp_path)
    one = experiments.load("read-size")
    (run,) = one.runs(False)
    side = {"runtime": 50, "total_ios": 1000, "io_bytes": 4096000, "clat_ns": {"mean": 63400, "max": 90000}}
    job = json.dumps({"jobs": [{"error": 0, "read": side, "job options": {}}]}).encode()
    found = one.samples({run.name: {f"{size}.json": job for size in (4, 16, 64)}})
    assert [check.passed for check in one.checks(found, False)] == [True]
    assert one.table(found)[1] == ["4", "63.4"] and all(set(one.about.by) <= set(sample) for sample in found)
    one.draw(found, tmp_path / "figure")
    assert (tmp_path / "figure.svg").exists()

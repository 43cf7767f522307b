# SPDX-License-Identifier: GPL-2.0
"""How bugs are planted, chosen and judged; `lab mutants` runs them on request."""

import dataclasses
import re
from pathlib import Path

import pytest
from mtlab.build import debian, target
from mtlab.cmd import hostmutants, hosttests, mutants, planted, torture
from mtlab.util.base import ROOT

CODE = """static int checked(struct zone *zone, int a)
{
	/* if (a == 1) is no condition */
	if (a == 3 &&
	\x20   (a & 1))
		zone->size = 1;
	if (zone->other)
		zone->count++;
	if (a == 4)
		return -EINVAL;
	if (mtftl_interrupted() && a)
		zone->size = 2;
	if (zone->other)
		zone->other = false;
	mtftl_assert(zone->size, "if (a == 2) %d", a);
	mtftl_assert(zone->count < zone->size);
	while (a)
		a--;
	return 0;
}

int unchecked(int b)
{
	if (b)
		return 1;
	return 0;
}

int thing_alloc(int c)
{
	if (c)
		return 1;
	mtftl_assert(c);
	return 0;
}
"""


def test_conditions_are_those_that_an_assertion_guards() -> None:
    """What it names later in the function: by the condition's own words, or by what its statement changes."""
    found = mutants.conditions("map/x.c", CODE)
    assert [(c.function, c.line, c.was) for c in found] == [
        ("checked", 4, "a == 3 && (a & 1)"), ("checked", 7, "zone->other")]


def test_a_mutant_differs_in_its_condition_alone() -> None:
    first = mutants.conditions("map/x.c", CODE)[0]
    assert first.into(CODE) == CODE.replace("a == 3 &&\n\t    (a & 1)", "!(a == 3 &&\n\t    (a & 1))")


def test_assertions_guard_conditions_all_over_the_core() -> None:
    guarded = {file: mutants.conditions(file, (target.SOURCE / file).read_text()) for file in mutants.FILES}
    assert all(guarded[f"{file}.c"] for file in ("map/map", "map/ring", "zone/zones", "zone/stream", "zone/write",
                                                 "durable/recover", "durable/checkpoint"))
    assert sum(map(len, guarded.values())) >= 40


def test_a_seed_chooses() -> None:
    chosen = mutants.choose(20, 1)
    assert chosen == mutants.choose(20, 1) != mutants.choose(20, 2)
    assert len(set(chosen)) == 20 and {bug.kind for bug in chosen} == {"negated"}
    anything = mutants.choose(60, 1, any_kind=True)
    assert not {bug.file for bug in anything} & set(hosttests.files()) and len({bug.kind for bug in anything}) > 5


PLANTED = """/* A loop: for (;;) */
static int work(struct unit *unit, u32 nr)
{
	u32 i, left = nr - 1;
	int r;

	mutex_lock(&unit->lock);
	for (i = 0; i < nr; i++)
		if (unit->at[i] == nr && i > 2)
			unit->seen = true;
	DMERR("%u + 1 of %u", i + 1, nr);
	mtftl_assert(left < nr);
	unit->first = left;
	unit->last = unit->first + left;
	smp_wmb();
	r = mtftl_send(unit,
	\x20      nr);
	if (r)
		return -EIO;
	mutex_unlock(&unit->lock);
	return 0;
}
"""


def _planted(kind: str) -> list[tuple[int, str, str]]:
    return [(bug.line, bug.was, bug.now) for bug in planted.plants("x.c", PLANTED) if bug.kind == kind]


def test_bugs_of_all_kinds_are_planted() -> None:
    """In code, not in what it says: comments, messages, assertions."""
    assert _planted("negated") == [
        (8, "i < nr", "!(i < nr)"),
        (9, "unit->at[i] == nr && i > 2", "!(unit->at[i] == nr && i > 2)"), (18, "if ([r])", "!(r)")]
    assert _planted("bound") == [(8, "for (i = 0; i [<] nr; i++)", "<="),
                                 (9, "if (unit->at[i] == nr && i [>] 2)", ">=")]
    assert _planted("compared") == [(9, "if (unit->at[i] [==] nr && i > 2)", "!=")]
    assert _planted("joined") == [(9, "if (unit->at[i] == nr [&&] i > 2)", "||")]
    assert _planted("returned") == [(10, "unit->seen = [true];", "false"), (19, "return [-EIO];", "0"),
                                    (21, "return [0];", "-EIO")]
    assert _planted("sign") == [(4, "u32 i, left = nr [-] 1;", "+"), (14, "unit->last = unit->first [+] left;", "-")]
    assert [line for line, *_ in _planted("one")] == [4, 8, 9]
    assert _planted("dropped") == [(line, was, "") for line, was in (
        (7, "mutex_lock(&unit->lock)"), (10, "unit->seen = true"), (13, "unit->first = left"),
        (14, "unit->last = unit->first + left"), (15, "smp_wmb()"), (16, "r = mtftl_send(unit, nr)"),
        (20, "mutex_unlock(&unit->lock)"))]
    assert [line for line, *_ in _planted("swapped")] == [13]
    assert set(planted.KINDS) == {bug.kind for bug in planted.plants("x.c", PLANTED)}
    page = (ROOT / "docs/lab/torture.md").read_text()
    assert re.findall(r"^\| (\w+) \| ", page.partition("| kind |")[2].partition("\n\n")[0], re.M) == list(planted.KINDS)


def test_a_bug_moves_no_line_and_has_a_name_of_its_own() -> None:
    bugs = planted.plants("x.c", PLANTED)
    assert all(bug.into(PLANTED).count("\n") == PLANTED.count("\n") and bug.into(PLANTED) != PLANTED for bug in bugs)
    assert len({bug.name for bug in bugs}) == len(bugs)
    moved = planted.plants("x.c", PLANTED.replace("static int", "\n/* More. */\nstatic int"))
    assert [bug.name for bug in moved] == [bug.name for bug in bugs]


def test_the_host_runs_what_reads_the_media() -> None:
    assert set(hosttests.files()) >= {"format/parse.c", "durable/recover.c", "durable/found.c", "durable/checkpoint.c",
                                      "zone/super.c", "zone/scan.c", "zone/walk.c", "policy/admit.c"}
    assert {program.group for program in hosttests.programs((Path("journal"),))} == {"test", "model", "corpus", "cuts"}
    assert any(program.uses("map/map.c") for program in hosttests.programs()) and "map/map.c" not in hosttests.files()
    assert len(hostmutants.choose(hosttests.files(), 0, 1)) >= 2500


RATE = "policy/rate.c"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> hosttests.Bench:
    """One program: the unit test of admission."""
    debian.ensure("build", "tool", "test")
    program = next(program for program in hosttests.programs() if program.name == "test_admit")
    return hosttests.make_bench(tmp_path_factory.mktemp("bench"), [program])


def test_a_test_notices_or_the_code_is_the_same(bench: hosttests.Bench, tmp_path: Path) -> None:
    """In the smallest file: what the test notices, what is the same code, and what the test cannot notice."""
    text = hostmutants.text_of(RATE)

    def found(words: str) -> planted.Planted:
        bugs = [bug for bug in planted.plants(RATE, text) if words in bug.name]
        assert len(bugs) == 1, f"{RATE} has changed, expected {words!r} once"
        return bugs[0]

    noticed, same, harmless = (found(words) for words in (
        "one: return ready > nr_zones / 64 ? ready : nr_zones / [64];",
        "bound: return ready [>] nr_zones / 64 ? ready : nr_zones / 64;", "bound: if (left [<] 1)"))
    verdict = hosttests.judge(bench, noticed, text, tmp_path)
    assert (verdict.by, verdict.program, verdict.words) == ("test", "test_admit", "limits_fit_the_device")
    assert [hosttests.judge(bench, bug, text, tmp_path).by for bug in (same, harmless)] == ["", ""]
    assert [hosttests.same_code(bug, text, tmp_path) for bug in (noticed, same)] == [False, True]
    broken = dataclasses.replace(noticed, text="(")
    assert hosttests.judge(bench, broken, text, tmp_path).by == "compiler"


def _boot(report: str, status: int = 1) -> torture.Boot:
    return torture.Boot(1, status, {}, report, 1.0, "")


def test_what_ended_a_mutant_is_named() -> None:
    warning = ("the guest's kernel printed a WARNING: CPU: 0 PID: 7 at zone/zone.c:12\n"
               "  | dm-mtftl: expected !zone->wp; zone 7: wp 3\n")
    assert mutants.end_of(_boot("", 0)) == ("", "")
    assert mutants.end_of(_boot("VIOLATION block 7\n" + warning)) == ("assertion", "!zone->wp; zone 7: wp 3")
    assert mutants.end_of(_boot("one\nVIOLATION block 7\nthree\n")) == ("oracle", "VIOLATION block 7")
    assert mutants.end_of(_boot("HANG in a flush\n")) == ("hang", "HANG in a flush")
    assert mutants.end_of(_boot("mount failed\nall of it is in x\n")) == ("load", "mount failed")


def test_what_a_program_says_is_sorted() -> None:
    program = hosttests.Program("test_x", "test", (), (), ())
    for status, said, by in (
            (0, "[  PASSED  ] 3 test(s).", ""),
            (1, "[  FAILED  ] a_test", "test"),
            (-6, "test_x: /a/target/map/age.c:7: f: Assertion `x < 2' failed.", "assertion"),
            (-6, "test_x: tests/test_x.c:7: f: Assertion `x < 2' failed.", "test"),
            (-6, "test_x: tests/kernel/kernel.h:7: mutex_lock: Assertion `!lock->held' failed.", "test"),
            (1, "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1", "sanitizer"),
            (1, "map/age.c:7:3: runtime error: shift exponent 64 is too large", "sanitizer"),
            (-24, "[ RUN      ] a_test", "hang"),
            (1, "VIOLATION recovery ended with signal 24", "hang"),
            (-11, "[ RUN      ] a_test", "test")):
        assert hosttests.verdict_of(program, status, [said], False).by == by, said


def _row(by: str) -> dict[str, str]:
    return {"by": by, "program": "", "words": "", "inputs": "", "name": ""}


def test_a_bug_that_was_read_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    bugs = planted.plants("x.c", PLANTED)
    monkeypatch.setattr(hostmutants, "reasons", lambda: {"x.c": {bugs[1].name: "it is a loop"}})
    result = hostmutants.summary([(bugs[0], _row("")), (bugs[1], _row("")), (bugs[2], _row("test")),
                                  (bugs[3], _row("same code"))], 40, 1)
    assert (result["planted"], result["of"], result["noticed"]) == (4, 40, 1)
    assert result["files"] == {"x.c": {"test": 1, "same code": 1, "equivalent": 1, "nothing": 1}}
    assert [(one["bug"], one["why"]) for one in result["unnoticed"]] == [       # type: ignore[attr-defined]
        (bugs[0].name, ""), (bugs[1].name, "it is a loop")]
    assert hostmutants.table(result["files"]).splitlines() == [                 # type: ignore[arg-type]
        "| | bugs | unit test | same code | equivalent | nothing |", "|---|---|---|---|---|---|",
        "| x.c | 4 | 1 | 1 | 1 | 1 |", "| all | 4 | 1 | 1 | 1 | 1 |"]


def test_a_verdict_is_kept_while_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug that nothing noticed, while the tests are the same; any other one, while its file is."""
    monkeypatch.setattr(hostmutants, "KEPT", tmp_path)
    monkeypatch.setattr(hostmutants, "text_of", lambda file: PLANTED)
    bugs = planted.plants("x.c", PLANTED)
    for bug, by in zip(bugs, ("test", "", "same code"), strict=False):
        hostmutants.keep(bug, hosttests.Verdict(by, "", ""), "before")
    assert [bool(hostmutants.known(bug, "before")) for bug in bugs[:4]] == [True, True, True, False]
    assert [bool(hostmutants.known(bug, "after")) for bug in bugs[:4]] == [True, False, True, False]
    monkeypatch.setattr(hostmutants, "text_of", lambda file: PLANTED + "\n")
    assert not hostmutants.known(bugs[0], "before")


def test_each_reason_is_of_a_file_that_the_host_runs() -> None:
    assert set(hostmutants.reasons()) <= set(hosttests.files())
    assert all(len(why) > 10 for bugs in hostmutants.reasons().values() for why in bugs.values())

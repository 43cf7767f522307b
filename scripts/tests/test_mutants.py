# SPDX-License-Identifier: GPL-2.0
"""How mutants are chosen and judged; `lab mutants` runs them on request."""

from mtlab.build import target
from mtlab.cmd import mutants, torture

CODE = """static int checked(int a)
{
	/* if (a == 1) is no condition */
	mtftl_assert(a, "if (a == 2)");
	if (a == 3 &&
	\x20   (a & 1))
		return 1;
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
	mtftl_assert(c);
	if (c)
		return 1;
	return 0;
}
"""


def test_conditions_are_those_of_functions_that_assert() -> None:
    found = mutants.conditions("map/x.c", CODE)
    assert [(c.function, c.line, c.text) for c in found] == [
        ("checked", 5, "a == 3 && (a & 1)"), ("checked", 8, "a")]


def test_a_mutant_differs_in_its_condition_alone() -> None:
    first = mutants.conditions("map/x.c", CODE)[0]
    assert mutants.negated(first, CODE) == CODE.replace("a == 3 &&\n\t    (a & 1)", "!(a == 3 &&\n\t    (a & 1))")


def test_every_file_has_conditions() -> None:
    for file in mutants.FILES:
        assert mutants.conditions(file, (target.SOURCE / file).read_text())


def test_a_seed_chooses() -> None:
    chosen = mutants.choose(80, 1)
    assert chosen == mutants.choose(80, 1) != mutants.choose(80, 2)
    assert len(set(chosen)) == 80
    for condition in chosen:
        text = (target.SOURCE / condition.file).read_text()
        assert " ".join(text[condition.begin:condition.end].split()) == condition.text


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

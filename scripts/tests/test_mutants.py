# SPDX-License-Identifier: GPL-2.0
"""How mutants are chosen and judged; `lab mutants` runs them on request."""

from mtlab.build import target
from mtlab.cmd import mutants, torture

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
    assert [(c.function, c.line, c.text) for c in found] == [
        ("checked", 4, "a == 3 && (a & 1)"), ("checked", 7, "zone->other")]


def test_a_mutant_differs_in_its_condition_alone() -> None:
    first = mutants.conditions("map/x.c", CODE)[0]
    assert mutants.negated(first, CODE) == CODE.replace("a == 3 &&\n\t    (a & 1)", "!(a == 3 &&\n\t    (a & 1))")


def test_assertions_guard_conditions_all_over_the_core() -> None:
    guarded = {file: mutants.conditions(file, (target.SOURCE / file).read_text()) for file in mutants.FILES}
    assert all(guarded[f"{file}.c"] for file in ("map/map", "map/ring", "zone/zones", "zone/stream", "zone/write",
                                                 "durable/recover", "durable/checkpoint"))
    assert sum(map(len, guarded.values())) >= 40


def test_a_seed_chooses() -> None:
    chosen = mutants.choose(20, 1)
    assert chosen == mutants.choose(20, 1) != mutants.choose(20, 2)
    assert len(set(chosen)) == 20
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

# SPDX-License-Identifier: GPL-2.0
"""What `lab coverage` makes of llvm-cov's numbers; the command itself runs on request only."""

from mtlab.cmd import coverage, hosttests

CODE = """static int work(u32 nr)
{
	mtftl_assert(nr || nr != 1,
		\x20    "%u", nr);
	if (nr > 2 && nr < 7)
		return 0;
	return nr ? -EIO : 0;
}
"""
# Lines and columns of a condition, how often it was true and false; a template has two of them.
COUNTED = {
    "branches": [[3, 15, 3, 17, 0, 0, 0, 0, 4], [5, 6, 5, 12, 3, 1, 0, 0, 4], [5, 16, 5, 22, 3, 0, 0, 0, 4],
                 [5, 16, 5, 22, 1, 0, 0, 0, 4], [7, 9, 7, 11, 0, 1, 0, 0, 4]],
    "mcdc_records": [[3, 15, 3, 28, 0, 5, [False, False]], [5, 6, 5, 22, 0, 5, [True, False]]],
}


def test_what_was_not_done_is_named() -> None:
    """By its words, not by its line; and nothing of assertions."""
    count, gaps = coverage.look("x.c", CODE, COUNTED, True)
    assert vars(count) == {"branches": 6, "taken": 4, "conditions": 2, "alone": 1}
    assert [(gap.line, gap.name) for gap in gaps] == [
        (5, "work() false: nr < 7"), (7, "work() true: nr"), (5, "work() alone: nr < 7")]
    assert coverage.look("x.c", CODE, COUNTED, False)[0].conditions == 0


def test_a_reason_closes_a_gap() -> None:
    count, gaps = coverage.look("x.c", CODE, COUNTED, True)
    result = coverage.summary({"x.c": count}, gaps, {"x.c": {"work() true: nr": "nobody asks for none"}})
    assert [gap["why"] for gap in result["gaps"]] == ["", "", "nobody asks for none"]      # type: ignore[attr-defined]
    assert coverage.table(result).splitlines()[2:] == [
        "| x.c | 6 | 4 | 66.7% | 2 | 1 | 50.0% | 1 | 2 |", "| all | 6 | 4 | 66.7% | 2 | 1 | 50.0% | 1 | 2 |"]


def test_a_reason_of_what_is_done_is_named() -> None:
    _, gaps = coverage.look("x.c", CODE, COUNTED, True)
    why = {"x.c": {gap.name: "for a test" for gap in gaps}}
    assert not coverage.needless(gaps, why)
    why["y.c"] = {"work() true: nr": "of another file"}
    assert coverage.needless(gaps[1:], why) == [f"target/x.c {gaps[0].name}", "target/y.c work() true: nr"]


def test_each_reason_is_of_a_file_that_the_host_runs() -> None:
    assert set(coverage.reasons()) <= set(hosttests.files())
    assert set(coverage.MCDC) <= set(hosttests.files())

# SPDX-License-Identifier: GPL-2.0
"""The rules for prose: what `make lint` must see in README, CONTRIBUTING and docs/, and what it must not."""

import json
import os
import re
from pathlib import Path

import pytest
from mtlab.cmd import prose
from mtlab.util.base import ROOT

LONG = "word " * 24 + "here."
FILES = {"docs/a.md": "# One heading\n\nText.\n\n## `code` and (more)\n"}


def _found(text: str, page: str = "README.md") -> list[str]:
    return [f"{one.line}: {one.said}" for one in prose.findings(page, text, FILES.get)]


def test_a_clean_page_is_passed() -> None:
    assert _found("# Title\n\nThe lane writes. It waits until the zone is full.\n\n- an item, with a [link]"
                  "(docs/a.md#one-heading)\n- one [more](docs/a.md#code-and-more)\n") == []


@pytest.mark.parametrize(("text", "said"), [
    ("word " * 21, "1: 105 columns, expected 100 at most"),
    ("## " + "word " * 21, "1: 108 columns, expected 100 at most"),
    ("Text.\n\n" + (LONG + "\n") * 5, "3: a paragraph of 125 words, expected 120 at most"),
    ("- one\n- " + (LONG + "\n  ") * 5, "2: a paragraph of 125 words, expected 120 at most"),
    ("word " * 18 + "\n" + "word " * 18, "1: a sentence of 36 words, expected 35 at most"),
    ("The lane waits. Who flushes waits.", "1: a person"),
    ("The lane gives it to nobody.", "1: a person"),
    ("It is full. Where a zone is full, the lane waits.", "1: a condition that is no if"),
    ("What was buffered is lost.", "1: a sentence without its actor in front"),
    ("Of a read the first go.", "1: a sentence without its actor in front"),
    ("It waits, for it has no zone.", "1: \"for\": \"because\""),
    ("All but for two.", "1: \"but for\""),
    ("3 CPUs are not to be halved.", "1: \"is to be\""),
    ("It takes 2 ms in the mean.", "1: \"in the mean\""),
    ("The line says of name whether it is well.", "1: \"says of\""),
    ("what is set of the namespace", "1: a relative clause"),
    ("A loop is dear there.", "1: \"dear\""),
    ("It stands still after so many ns.", "1: \"so many\""),
    ("A [link](docs/b.md).", "1: a link to docs/b.md, which does not exist"),
    ("A [link](docs/a.md#two).", "1: a link to docs/a.md#two, but docs/a.md has no such heading"),
    ("A [link](#two).", "1: a link to #two"),
    ("It is (docs/a.md,\n\"Another heading\") so.", "1: docs/a.md, \"Another heading\" is named"),
    ("See docs/b.md.", "1: docs/b.md is named, which does not exist"),
    ("| see | [b](docs/b.md) |", "1: a link to docs/b.md"),
], ids=lambda value: value[:24] if isinstance(value, str) else None)
def test_what_is_planted_is_named(text: str, said: str) -> None:
    assert any(line.startswith(said) for line in _found(text)), _found(text)


@pytest.mark.parametrize("text", [
    "| " + "cell " * 40 + " |",
    "Text:\n\n    " + "code " * 40 + "\n\n    more of what nobody reads\n",
    "```\n" + "code " * 40 + "\n```",
    "<!-- numbers: made by a command -->\n" + "word " * 200 + "\n<!-- end of numbers -->",
    "A [word](https://example.org/" + "long/" * 30 + ").",
    "Where is the zone?",
    "- It is there (docs/a.md, \"One\n  heading\").",
    "This is for people who have a zoned drive.",
    "It runs as long as that. It reads so much more.",
    "`who`, `whoever` and `dear` are words.",
])
def test_what_is_no_fault_is_passed(text: str) -> None:
    assert _found(text) == []


def test_a_debt_may_not_grow_and_has_to_fall() -> None:
    found = prose.findings("docs/b.md", "Who waits?\n\nHe waits.\n", FILES.get)
    assert not list(prose.judge("docs/b.md", found, {"banned": 2}))
    assert list(prose.judge("docs/b.md", found, {"banned": 1})) == [
        "docs/b.md: breaks the rule 'banned' 2 times, 1 are tolerated; scripts/lab prose docs/b.md lists them"]
    assert "3 are noted: run scripts/lab prose --lower" in next(prose.judge("docs/b.md", found, {"banned": 3}))
    assert len(list(prose.judge("docs/b.md", found, {}))) == 2


def test_a_debt_is_lowered_and_never_raised() -> None:
    debt = {"a.md": {"column": 3, "banned": 1}, "b.md": {"column": 1}, "c.md": {"column": 2}}
    counts = {"a.md": {"column": 2}, "c.md": {"column": 5, "banned": 1}}
    assert prose.lowered(debt, counts) == {"a.md": {"column": 2}, "c.md": {"column": 2}}
    assert json.loads(prose.written(debt)) == debt


def test_a_page_is_measured() -> None:
    text = "The cat sat on the mat. It saw a dog.\n\n- " + "word " * 36 + "\n\n    code code\n"
    assert prose.metrics(text)[:4] == ["46", "182", "36", "1"]
    easy = prose.reading_ease(prose.paragraphs("The cat sat on the mat. It saw a dog."))
    hard = prose.reading_ease(prose.paragraphs(
        "Deterministic virtualisation necessitates comprehensive instrumentation of asynchronous operations."))
    assert easy > 100 > 0 > hard


def test_our_own_pages_comply(tmp_path: Path) -> None:
    assert not prose.complaints()
    assert prose.DEBT.read_text() == prose.written(dict(sorted(json.loads(prose.DEBT.read_text()).items())))


def _pages() -> dict[str, str]:
    """All pages below docs/ and results/, by name."""
    return {str(path.relative_to(ROOT)): path.read_text() for folder in ("docs", "results")
            for path in sorted((ROOT / folder).glob("**/*.md"))}


def test_the_glossary_has_terms_that_pages_use() -> None:
    """Each once; and each page leads there."""
    pages = _pages()
    terms = re.findall(r"^### (.*)$", pages.pop("docs/glossary.md"), re.M)
    assert len(terms) >= 40 and len(set(terms)) == len(terms)
    words = " ".join("\n".join(pages.values()).lower().replace("-", " ").replace("_", " ").split())
    assert [term for term in terms if not re.search(rf"\b{term.lower().replace('-', ' ')}", words)] == []
    assert [name for name, text in pages.items() if "glossary.md" not in text] == []


def test_two_links_lead_from_the_readme_to_every_page() -> None:
    """By the index of docs/ and that of results/."""
    pages = _pages()
    indexes = {"docs/README.md", "results/README.md"}
    reached = {os.path.normpath(os.path.join(os.path.dirname(index), link))
               for index in indexes for link in re.findall(r"\]\(([\w/.-]+\.md)", pages[index])}
    assert set(pages) - reached - indexes == set()
    assert all(f"({index})" in (ROOT / "README.md").read_text() for index in indexes)

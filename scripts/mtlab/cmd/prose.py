# SPDX-License-Identifier: GPL-2.0
"""The prose of README, CONTRIBUTING, docs/ and results/: `lab lint` holds it to rules, `lab prose` measures it.

CONTRIBUTING.md has the rules in words. Tables, code, headings and what commands generate between two comments
are no prose. A page that does not comply yet has a number for each rule in prose-debt.json: how often it breaks
the rule. The number may not grow, and has to follow when it falls (`lab prose --lower`).
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..util.base import ROOT, output, write_file

DEBT = Path(__file__).with_name("prose-debt.json")
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "results/**/*.md")
COLUMNS = 100
PARAGRAPH_WORDS = 120
SENTENCE_WORDS = 35
# What each is, how it is recognised, and what is written instead.
BANNED: tuple[tuple[str, str], ...] = (
    (r"(?i)(?<!people )(?<!those )(?<!readers )\b(who|whom|whoever|nobody|somebody|he|him|his)\b",
     "a person: name the program or the thing, it is \"it\""),
    (r"^(Where|Should|Had)\b(?!.*\?$)", "a condition that is no if: write \"If\""),
    (r"^(What|Of)\b(?!.*\?$)", "a sentence without its actor in front: begin with the noun"),
    (r"(?i)[,;:(] for (it|its|they|their|there|what|no|nothing|then|otherwise|another|that)\b", "\"for\": \"because\""),
    (r"(?i)\b(but|save) for\b", "\"but for\": \"except\""),
    (r"(?i)\b(is|are|was|were) (not )?to be \w+ed\b", "\"is to be\": \"must be\", or say who does it"),
    (r"(?i)\bin the mean\b(?! ?time)", "\"in the mean\": \"on average\""),
    (r"(?i)\b(says?|said|tells?|told) of\b", "\"says of\": \"says about\", \"describes\""),
    (r"(?i)\bwhat (is|was) (set|said|told|left|asked|meant) of\b", "a relative clause without its noun"),
    (r"(?i)\b(dear|dearer|dearest)\b", "\"dear\": \"expensive\""),
    (r"(?i)\bso (many|much|long)(?! (as|that|more|longer|faster)\b)[ ,.;]",
     "\"so many\": the number, or \"as many as\""),
)
_BEGIN = re.compile(r"<!-- [\w-]+: ")
_END = re.compile(r"<!-- end of ")
_ITEM = re.compile(r"\s*([-*]|\d+\.) +")


@dataclass(frozen=True)
class Paragraph:
    """Text that belongs together: a paragraph or an item of a list."""

    line: int
    text: str       # without marks, links as their words, code as one word

    def words(self) -> int:
        return len(_words(self.text))

    def sentences(self) -> list[str]:
        return [s for s in re.split(r"(?<=[.!?])[)\"]*\s+", self.text) if _words(s)]


@dataclass(frozen=True)
class Finding:
    line: int
    rule: str       # column, paragraph, sentence, banned, link
    said: str


def _words(text: str) -> list[str]:
    return [word for word in text.split() if re.search(r"\w", word)]


def _plain(text: str) -> str:
    text = re.sub(r"`[^`]*`", "Code", " ".join(text.split()))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\b(e\.g|i\.e|vs|cf)\.", r"\1", text)
    return re.sub(r"\*+|(?<!\w)_|_(?!\w)", "", text)


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Each line with its number and what it is: text, heading, table, code, blank or generated."""
    generated = fenced = False
    before = "blank"
    for number, line in enumerate(text.splitlines(), 1):
        kind = "text"
        if generated or _BEGIN.match(line):
            generated = not _END.match(line)
            kind = "generated"
        elif line.startswith("```"):
            fenced = not fenced
            kind = "code"
        elif fenced:
            kind = "code"
        elif not line.strip():
            kind = "blank"
        elif line.startswith("#"):
            kind = "heading"
        elif line.lstrip().startswith("|"):
            kind = "table"
        elif line.startswith("<!--"):
            kind = "generated"
        elif line.startswith(("    ", "\t")) and before not in ("text", "item") and not _ITEM.match(line):
            kind = "code"
        if not (kind == "blank" and before == "code"):      # blank lines do not end code
            before = kind
        yield number, kind, line


def paragraphs(text: str) -> list[Paragraph]:
    """A page's prose."""
    found: list[tuple[int, list[str]]] = []
    is_open = False
    for number, kind, line in _lines(text):
        if kind != "text":
            is_open = False
            continue
        item = _ITEM.match(line)
        if item or not is_open:
            found.append((number, []))
        found[-1][1].append(line[item.end():] if item else line)
        is_open = True
    return [Paragraph(number, _plain(" ".join(lines))) for number, lines in found]


def anchors(text: str) -> set[str]:
    """What links to a page's headings may end in."""
    return {_anchor(line.lstrip("# ")) for _, kind, line in _lines(text) if kind == "heading"}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).strip().replace(" ", "-")


def _links(page: str, text: str, read: Callable[[str], str | None]) -> Iterator[Finding]:
    """Links to files and headings that are not there, and pages and headings that are named but are not there."""
    folder = Path(page).parent
    for number, kind, line in _lines(text):
        if kind == "code":
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            name = _normal(folder / path) if path else page
            there = text if name == page else read(name)
            if there is None:
                yield Finding(number, "link", f"a link to {path}, which does not exist")
            elif anchor and anchor not in anchors(there):
                yield Finding(number, "link", f"a link to {target}, but {name} has no such heading")
    # A name of a section may go over the end of a line.
    flat = " ".join(line.strip() if kind == "text" else "" for _, kind, line in _lines(text))
    for name, heading in re.findall(r"\b(docs/[\w/-]+\.md)(?:, \"([^\"]+)\")?", flat):
        there = read(name)
        if there is None:
            yield Finding(1, "link", f"{name} is named, which does not exist")
        elif heading and _anchor(heading) not in anchors(there):
            yield Finding(1, "link", f"{name}, \"{heading}\" is named, but that page has no such heading")


def _normal(path: Path) -> str:
    return str((ROOT / path).resolve().relative_to(ROOT.resolve()))


def findings(page: str, text: str, read: Callable[[str], str | None]) -> list[Finding]:
    """All that is wrong with a page; read gives another file's text, or None."""
    found = []
    for number, kind, line in _lines(text):
        shown = re.sub(r"\]\([^)]*\)", "]", line)
        if kind in ("text", "heading") and len(shown) > COLUMNS:
            found.append(Finding(number, "column", f"{len(shown)} columns, expected {COLUMNS} at most"))
    for one in paragraphs(text):
        if one.words() > PARAGRAPH_WORDS:
            found.append(Finding(one.line, "paragraph",
                                 f"a paragraph of {one.words()} words, expected {PARAGRAPH_WORDS} at most"))
        for sentence in one.sentences():
            if len(_words(sentence)) > SENTENCE_WORDS:
                found.append(Finding(one.line, "sentence", f"a sentence of {len(_words(sentence))} words, expected "
                                     f"{SENTENCE_WORDS} at most: {sentence[:50]}..."))
            for pattern, what in BANNED:
                if match := re.search(pattern, sentence):
                    near = sentence[max(match.start() - 20, 0):match.end() + 20].strip()
                    found.append(Finding(one.line, "banned", f"{what}: ...{near}..."))
    return sorted([*found, *_links(page, text, read)], key=lambda finding: finding.line)


def _counts(found: Iterable[Finding]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in found:
        counts[one.rule] = counts.get(one.rule, 0) + 1
    return dict(sorted(counts.items()))


def judge(page: str, found: list[Finding], tolerated: dict[str, int]) -> Iterator[str]:
    """What lint says about a page whose debt is known."""
    counts = _counts(found)
    for rule in sorted({*counts, *tolerated}):
        count, known = counts.get(rule, 0), tolerated.get(rule, 0)
        if count < known:
            yield (f"{page}: breaks the rule '{rule}' {count} times, {known} are noted: "
                   "run scripts/lab prose --lower, and commit what it changes")
        elif count > known and known:
            yield (f"{page}: breaks the rule '{rule}' {count} times, {known} are tolerated; "
                   f"scripts/lab prose {page} lists them")
        elif count > known:
            yield from (f"{page}:{one.line}: {one.said}" for one in found if one.rule == rule)


def _pages(root: Path = ROOT) -> list[str]:
    return [str(path.relative_to(root)) for pattern in PAGES for path in sorted(root.glob(pattern))]


def _read(name: str) -> str | None:
    path = ROOT / name
    if path.is_dir():
        return ""
    return path.read_text(errors="replace") if path.exists() else None


def _found(page: str) -> list[Finding]:
    return findings(page, (ROOT / page).read_text(), _read)


def _debt() -> dict[str, dict[str, int]]:
    return dict(json.loads(DEBT.read_text()))


def complaints() -> str:
    """All that is wrong with the prose and is not tolerated, a line each."""
    debt = _debt()
    said = [f"{DEBT.name}: {page} does not exist" for page in debt if not (ROOT / page).exists()]
    for page in _pages():
        said += judge(page, _found(page), debt.get(page, {}))
    return "\n".join(said)


def lowered(debt: dict[str, dict[str, int]], counts: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The debt of pages whose numbers fell; those that grew stay."""
    fell = {page: {rule: min(known, counts.get(page, {}).get(rule, 0)) for rule, known in rules.items()}
            for page, rules in debt.items()}
    left = {page: {rule: number for rule, number in rules.items() if number} for page, rules in fell.items()}
    return {page: rules for page, rules in sorted(left.items()) if rules}


def _syllables(word: str) -> int:
    word = re.sub(r"[^a-z]", "", word.lower())
    groups = len(re.findall(r"[aeiouy]+", re.sub(r"(?<![aeiouyl])e$|(?<=[^aeiouytd])ed$", "", word)))
    return max(groups, 1)


def reading_ease(found: list[Paragraph]) -> float:
    """Flesch: 100 is very easy, 50 fairly difficult, 30 difficult."""
    words = [word for one in found for word in _words(one.text)]
    sentences = sum(len(one.sentences()) for one in found)
    if not words:
        return 0
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * sum(map(_syllables, words)) / len(words)


def metrics(text: str) -> list[str]:
    """A page's words, longest line and paragraph, long sentences, and reading ease."""
    found = paragraphs(text)
    lines = [len(re.sub(r"\]\([^)]*\)", "]", line)) for _, kind, line in _lines(text) if kind == "text"]
    long = sum(len(_words(s)) > SENTENCE_WORDS for one in found for s in one.sentences())
    return [str(number) for number in (sum(one.words() for one in found), max(lines, default=0),
                                       max((one.words() for one in found), default=0), long)] + [
        f"{reading_ease(found):.0f}"]


def _prose(args: argparse.Namespace) -> int:
    if args.lower:
        write_file(DEBT, written(lowered(_debt(), {page: _counts(_found(page)) for page in _pages()})))
        return 0
    if args.pages:
        found = [(page, one) for page in args.pages for one in _found(page)]
        for page, one in found:
            print(f"{page}:{one.line}: {one.said}")
        return int(bool(found))
    if args.at:
        names = output(["git", "-C", ROOT, "ls-tree", "-r", "--name-only", args.at]).splitlines()
        texts = {name: output(["git", "-C", ROOT, "show", f"{args.at}:{name}"]) for name in names
                 if name in PAGES or re.fullmatch(r"(docs|results)/.*\.md", name)}
    else:
        texts = {page: (ROOT / page).read_text() for page in _pages()}
    rows = [["page", "words", "longest line", "longest paragraph", f"sentences > {SENTENCE_WORDS}", "Flesch"]]
    rows += [[page, *metrics(text)] for page, text in texts.items()]
    for row in rows:
        print(f"{row[0]:24}" + "".join(f"{cell:>{max(len(head), 6) + 2}}" for cell, head in
                                       zip(row[1:], rows[0][1:], strict=True)))
    return 0


def written(debt: dict[str, dict[str, int]]) -> str:
    """The debt as its file has it: a page a line, so that branches that change two pages merge."""
    return "{\n" + ",\n".join(f"  {json.dumps(page)}: {json.dumps(rules)}" for page, rules in debt.items()) + "\n}\n"


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`prose` on the command line of scripts/lab."""
    prose = commands.add_parser("prose", help="measure README, docs/ and results/: long lines, paragraphs, sentences")
    prose.add_argument("pages", nargs="*", metavar="PAGE", help="list what is wrong with these pages")
    prose.add_argument("--at", metavar="COMMIT", help="measure the pages of another commit")
    prose.add_argument("--lower", action="store_true", help="note that pages break rules less often than before")
    prose.set_defaults(function=_prose)

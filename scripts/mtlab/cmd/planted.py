# SPDX-License-Identifier: GPL-2.0
"""Bugs that a program plants in a C file, one each: what `lab mutants` gives to tests and guests.

A planted bug replaces a part of one function by a text with as many lines, so that all other lines keep their numbers.
KINDS names what is changed. Statements that only say something (messages, tracepoints, assertions) are left alone.
The files are in kernel style, which makes them easy to take apart: a statement begins behind tabs, operators stand
between spaces.
"""

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..util.base import LabError

KINDS = {
    "negated": "a condition of if, while or for is negated",
    "bound": "`<` becomes `<=`, and so on: a comparison is off by one",
    "compared": "`==` becomes `!=`, or the other way round, in a part of a condition or a value",
    "joined": "`&&` becomes `||`, or the other way round",
    "dropped": "a statement is left out: an assignment, a call, a lock, a barrier, a jump",
    "swapped": "two statements change places, of which both call something for one object, or one uses what the other"
               " changes",
    "one": "a number is one more, or 1 is neither added nor subtracted",
    "sign": "`+` becomes `-`, or the other way round",
    "returned": "an error becomes 0, true becomes false, or the other way round",
}
_WORD = re.compile(r"[A-Za-z_]\w*")
# They say something, or state what holds.
_SAYS = re.compile(r"\b(?:DM(?:ERR|WARN|INFO)\w*|mtftl_(?:err|warn|info|warn_limit)|trace_\w+|mtftl_assert\w*"
                   r"|lockdep_\w+|BUILD_BUG_ON\w*|WARN_ON\w*|static_assert|cond_resched)\(")
_STATEMENT = re.compile(r"^(\t+)(?!(?:if|for|while|return|else|case|default|do|switch)\b)"
                        r"([A-Za-z_*(+-][^;{}]*);$", re.M)
_DECLARED = re.compile(r"(?:\w+\s+)+\**\w|\w+ \*+\w")
_ASSIGNED = re.compile(r"(\w+)(?:\[[^\]]*\])?\s*(?:[-+*/|&^%]|<<|>>)?=(?!=)|(\w+)(?:\+\+|--)"
                       r"|(?:\+\+|--)[\w>.-]*?(\w+)\s*$")


@dataclass(frozen=True)
class Planted:
    """A bug: what replaces a file's text from one offset to another."""

    file: str
    line: int
    function: str
    kind: str
    begin: int
    end: int
    was: str            # words of the original, on one line
    now: str            # likewise of the bug
    text: str           # as it goes into the file
    number: int = 0     # among those of the same words in the same function

    @property
    def name(self) -> str:
        """The same as long as nothing about it changes; its line may."""
        return f"{self.function}() {self.kind}: {self.was} -> {self.now or 'nothing'}" + (
            f" ({self.number + 1})" if self.number else "")

    def into(self, text: str) -> str:
        """The file with the bug."""
        return text[:self.begin] + self.text + text[self.end:]


def blank(text: str) -> str:
    """The same length, without comments and strings."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def functions(bare: str) -> Iterator[tuple[str, int, int]]:
    """Names of functions, and where their bodies begin and end."""
    for found in re.finditer(r"^(?!\s|#)[^\n;={}#]*?\b(\w+)\([^;{}]*\)\n\{\n", bare, re.M):
        yield found[1], found.end(), bare.index("\n}\n", found.end() - 1) + 1


def closing(text: str, opening: int) -> int:
    """Where the parenthesis ends that opens there."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    raise LabError("a parenthesis has no end")


def _quiet(body: str) -> str:
    """A body without what only says something."""
    for found in list(_SAYS.finditer(body)):
        end = closing(body, found.end() - 1) + 1
        body = body[:found.start()] + re.sub(r"[^\n]", " ", body[found.start():end]) + body[end:]
    return body


Change = tuple[str, int, int, str]      # kind, offsets in the body, what it becomes


def _conditions(body: str) -> Iterator[Change]:
    for found in re.finditer(r"\b(if|while|for) \(", body):
        begin, end = found.end(), closing(body, found.end() - 1)
        if found[1] == "for":
            parts = body[begin:end].split(";")
            if len(parts) != 3 or not parts[1].strip():
                continue
            begin += len(parts[0]) + 1
            end = begin + len(parts[1])
            begin += len(parts[1]) - len(parts[1].lstrip())
        if body[begin:end].strip():
            yield "negated", begin, end, f"!({body[begin:end]})"


def _operators(body: str) -> Iterator[Change]:
    becomes = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    for found in re.finditer(r"(?<=\s)(?:<=|>=|<|>)(?=\s)", body):
        yield "bound", *found.span(), becomes[found[0]]
    # Negated, such a condition is the same bug.
    alone = [(begin, end) for _, begin, end, _ in _conditions(body)
             if len(re.findall(r"&&|\|\||[=!]=", body[begin:end])) == 1]
    for found in re.finditer(r"(?<=\s)[=!]=(?=\s)", body):
        if not any(begin <= found.start() < end for begin, end in alone):
            yield "compared", *found.span(), "!=" if found[0] == "==" else "=="
    for found in re.finditer(r"(?<=\s)(?:&&|\|\|)(?=\s)", body):
        yield "joined", *found.span(), "||" if found[0] == "&&" else "&&"
    for found in re.finditer(r"(?<=\s)[+-]=?(?=\s)", body):
        yield "sign", *found.span(), found[0].translate(str.maketrans("+-", "-+"))


def _numbers(body: str) -> Iterator[Change]:
    for found in re.finditer(r"\s[+-] 1(?=\W)", body):
        yield "one", *found.span(), ""
    for found in re.finditer(r"(?<![\w.+-])(?<![+-] )(0|[1-9]\d{0,5})(?=u?\b[^.\w])", body):
        if not re.search(r"return $", body[:found.start()][-8:]):
            yield "one", *found.span(), str(int(found[0]) + 1)


def _returns(body: str) -> Iterator[Change]:
    for found in re.finditer(r"\breturn (-E[A-Z]+|0|true|false);", body):
        becomes = {"0": "-EIO", "true": "false", "false": "true"}
        yield "returned", *found.span(1), becomes.get(found[1], "0")
    for found in re.finditer(r"(?<= = )(true|false)(?=;)", body):
        yield "returned", *found.span(), {"true": "false", "false": "true"}[found[0]]


def _statements(body: str) -> list["re.Match[str]"]:
    return [found for found in _STATEMENT.finditer(body)
            if found[2].count("(") == found[2].count(")") and not _DECLARED.match(found[2])
            and not found[2].startswith("(void)")]


def _dropped(body: str) -> Iterator[Change]:
    for found in _statements(body):
        yield "dropped", *found.span(2), ""


def _depend(one: str, other: str) -> bool:
    """Does their order matter, as far as their words tell?"""
    calls = [set(re.findall(r"\w+(?=\()", text)) for text in (one, other)]
    words = [set(_WORD.findall(text)) for text in (one, other)]
    if all(calls) and (words[0] - calls[0]) & (words[1] - calls[1]):
        return True
    return any({word for words in _ASSIGNED.findall(a) for word in words if word} & set(_WORD.findall(b))
               for a, b in ((one, other), (other, one)))


def _swapped(body: str) -> Iterator[Change]:
    for one, other in itertools.pairwise(_statements(body)):
        together = body[one.end():other.start()] == "\n" and one[1] == other[1]
        # A statement that belongs to an if or a loop without braces has fewer tabs before it.
        before = body[:one.start()].rstrip("\n").rpartition("\n")[2]
        inner = before and len(before) - len(before.lstrip("\t")) < len(one[1]) and not before.endswith(("{", ":", ";"))
        jumps = re.match(r"(?:goto|break|continue)\b", other[2])
        if together and not inner and not jumps and _depend(one[2], other[2]):
            yield "swapped", one.start(2), other.end(2), f"{other[2]};\n{one[1]}{one[2]}"


def _line(text: str) -> str:
    return " ".join(text.split())


@functools.cache
def plants(file: str, text: str) -> tuple[Planted, ...]:
    """All bugs that can be planted in a file, in the order of their places."""
    found: list[Planted] = []
    seen: dict[str, int] = {}
    bare = blank(text)
    for function, begin, end in functions(bare):
        body = _quiet(bare[begin:end])
        changes = [change for kind in (_conditions, _operators, _numbers, _returns, _dropped, _swapped)
                   for change in kind(body)]
        for kind, at, to, now in sorted(changes, key=lambda change: (change[1], change[2], change[0])):
            # With the strings and comments that are blank in the body.
            was = text[begin + at:begin + to]
            if kind == "negated":
                now = f"!({was})"
            lines = was.count("\n") - now.count("\n")
            bug = Planted(file, text.count("\n", 0, begin + at) + 1, function, kind, begin + at, begin + to,
                          _around(text, begin + at, begin + to), _line(now), now + "\n" * max(0, lines))
            number = seen.get(bug.name, 0)
            seen[bug.name] = number + 1
            found.append(replace(bug, number=number))
    return tuple(found)


def _around(text: str, begin: int, end: int) -> str:
    """The words that are replaced; of an operator or a number, its line with a mark."""
    was = _line(text[begin:end])
    if len(was) > 5:
        return was
    line_begin = text.rindex("\n", 0, begin) + 1
    line_end = text.index("\n", end)
    return f"{text[line_begin:begin].lstrip()}[{text[begin:end].strip()}]{text[end:line_end]}".strip()

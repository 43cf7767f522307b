# SPDX-License-Identifier: GPL-2.0
"""What changed between two results: samples by what they are of, checks by name. Provenance is not compared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .experiments import LEAST, MOST, Sample


@dataclass(frozen=True)
class Difference:
    """A number or a verdict that is another one; None where there was none, or is none any more."""

    of: str                             # the sample's identity, or the check
    key: str                            # the sample's field; "" of a check
    before: Any
    after: Any
    within_spread: bool = False         # no further than another seed moves it

    def __str__(self) -> str:
        notes = []
        if self.key and all(isinstance(x, int | float) and x for x in (self.before, self.after)):
            notes.append(f"{100 * (self.after / self.before - 1):+.2f}%")
        if self.within_spread:
            notes.append("within the spread")
        return (f"{self.of}: {self.key}{' ' if self.key else ''}{self.before} -> {self.after}"
                + (f" ({', '.join(notes)})" if notes else ""))


def by_identity(results: Mapping[str, Any], by: Sequence[str]) -> dict[tuple[Any, ...], Sample]:
    """Samples by what they are of; by their place where nothing tells that."""
    return {tuple(s.get(key) for key in by) or (place,): s for place, s in enumerate(results["samples"])}


def _within_spread(a: Mapping[str, Any], b: Mapping[str, Any], key: str, prefix: str) -> bool:
    """Did a median move no further than another seed moves what was measured?"""
    def holds(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        return prefix + "least" in one and bool(one[prefix + "least"] <= other[key] <= one[prefix + "most"])

    return holds(a, b) or holds(b, a)


def _of_samples(a: Sample, b: Sample, by: Sequence[str]) -> Iterator[Difference]:
    label = " ".join(f"{k}={v}" for k, v in b.items()
                     if (k in by if by else a.get(k) == v and not isinstance(v, float)))
    for key in sorted({*a, *b}):
        if a.get(key) != b.get(key) and not key.endswith((LEAST, MOST)):
            yield Difference(label, key, a.get(key), b.get(key),
                             key in a and key in b and _within_spread(a, b, key, key + "_"))


def _of_checks(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    known = {c["name"]: c for c in old["checks"]}
    for check in new["checks"]:
        was = known.get(check["name"])
        if was and was["pass"] != check["pass"]:
            before, after = ("pass" if c["pass"] else "miss" for c in (was, check))
            yield Difference(f"check {check['name']}", "", before, after, _within_spread(was, check, "measured", ""))


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """All of them, in the order of the newer results."""
    by = new.get("by", ())
    before, after = by_identity(old, by), by_identity(new, by)
    counts = {"gone": len(before.keys() - after.keys()), "new": len(after.keys() - before.keys())}
    found = [Difference("samples", what, 0, count) for what, count in counts.items() if count]
    for identity in (i for i in after if i in before):
        found += _of_samples(before[identity], after[identity], by)
    return [*found, *_of_checks(old, new)]

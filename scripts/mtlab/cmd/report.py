# SPDX-License-Identifier: GPL-2.0
"""One self-contained HTML page of all results: figures, tables, checks, and how to repeat them."""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..build import debian
from ..exp.experiments import LEAST, names, spread
from ..exp.results import RESULTS, bound, counts, measured, why
from ..exp.sources import WORKS
from ..run import options
from ..util.base import BUILD, ROOT, LabError, output, say, write_file
from . import boots, drives, origins, properties, story, suites, tested

TEMPLATE = Path(__file__).with_name("report.html.j2")
_NUMBERS, _END = "<!-- numbers: scripts/lab report --readme -->", "<!-- end of numbers -->"
_STORY, _STORY_END = "<!-- story: scripts/lab report --readme -->", "<!-- end of story -->"
_SPREAD = "<!-- spread: scripts/lab report --readme -->", "<!-- end of spread -->"
# What a figure can depend on: not tests, and not what is built for the host alone.
CODE = ("target", "emulator", ":!target/tests", ":!target/tool", ":!target/simulator", ":!emulator/tests",
        ":!emulator/upstream")
_NEWER = re.compile(r"\d+ commits? of the target and the emulator (?:are|is) newer, up to \w+\.")
Where = tuple[str, dict[str, Any]]      # an experiment, and which of its samples
# What the README compares: the load, our sample, what there is instead, and its sample.
COMPARED: tuple[tuple[str, Where, str, Where], ...] = (
    ("8 users on 8 cores, a fresh drive, one block a command",
     ("scaling", {"profile": "tlc", "line": "multi", "users": 8}),
     "one buffer, one writer thread", ("scaling", {"profile": "tlc", "line": "single", "users": 8})),
    ("32 users on 32 cores, a server's caches modelled", ("width", {"clock": "caches", "line": "multi", "cpus": 32}),
     "one buffer, one writer thread", ("width", {"clock": "caches", "line": "single", "cpus": 32})),
    ("8 users on three quarters of a drive, GC at work", ("peers", {"line": "mtftl"}),
     "dm-zoned", ("peers", {"line": "dm-zoned"})),
    ("the same on eight files, ext4 above dm-mtftl", ("peers", {"line": "mtftl-ext4"}),
     "btrfs, zoned", ("peers", {"line": "btrfs"})),
    ("the same on a fifth of the drive", ("peers", {"line": "mtftl-ext4-fifth"}), "F2FS", ("peers", {"line": "f2fs"})),
    ("8 users, a used drive of the same flash", ("pblk", {"state": "steady", "line": "multi", "unit": 8, "users": 8}),
     "pblk, Linux 5.10", ("pblk", {"state": "steady", "line": "pblk", "unit": 8, "users": 8})),
)
# What docs/lab/experiments.md shows with its spread: words, which experiment's sample, which field, how to write it.
HEADLINES: tuple[tuple[str, str, dict[str, Any], str, str, float], ...] = (
    ("8 users' random writes on a fresh TLC drive (1000/s)", "scaling",
     {"profile": "tlc", "line": "multi", "users": 8}, "iops", ".0f", 1000),
    ("the same through one buffer and one writer (1000/s)", "scaling",
     {"profile": "tlc", "line": "single", "users": 8}, "iops", ".0f", 1000),
    ("uniform overwrites in the steady state (1000/s)", "steady",
     {"load": "uniform", "streams": "by life", "second": None}, "iops", ".1f", 1000),
    ("their write amplification", "steady",
     {"load": "uniform", "streams": "by life", "second": None}, "write_amplification", ".2f", 1),
    ("skewed ones, by zipf 1.2 (1000/s)", "steady",
     {"load": "zipf", "streams": "by life", "second": None}, "iops", ".1f", 1000),
    ("their write amplification", "steady",
     {"load": "zipf", "streams": "by life", "second": None}, "write_amplification", ".2f", 1),
    ("16 KiB random writes on files of a drive that is full (MB/s)", "write-cliff",
     {"workload": "randwrite", "part": "all"}, "plateau_mb_s", ".0f", 1),
    ("random writes on three quarters of a TLC drive, GC at work (1000/s)", "peers",
     {"line": "mtftl"}, "iops", ".1f", 1000),
    ("the same on dm-zoned (1000/s)", "peers", {"line": "dm-zoned"}, "iops", ".3f", 1000),
)


def _svg(path: Path, name: str) -> str:
    """The figure without its XML prologue, its ids made unique within the page."""
    text = path.read_text()
    text = text[text.index("<svg"):]
    for before, after in (('id="', f'id="{name}-'), ('href="#', f'href="#{name}-'), ("url(#", f"url(#{name}-")):
        text = text.replace(before, after)
    return text


def page(folder: Path) -> str:
    """The whole report as one page that needs nothing else."""
    import jinja2  # other commands do without it

    found = {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("*/results.json"))}
    if not found:
        raise LabError(f"no results in {folder}; scripts/lab exp NAME makes them")
    figures = {name: _svg(folder / name / "figure.svg", name) for name in found}
    chapters = [(chapter, [found[name] for name in names if name in found]) for chapter, names in story.CHAPTERS]
    template = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined).from_string(
        TEMPLATE.read_text())
    return str(template.render(chapters=chapters, experiments=list(found.values()), figures=figures, counts=_counts,
                               measured=measured, bound=bound, why=why, answer=_answer, missed=story.missed,
                               newer=lambda one: newer(one["provenance"]) or "", works=WORKS, of_check=_of_check,
                               commits=lambda one: commits(one["experiment"], one["provenance"])))


def _answer(results: Mapping[str, Any]) -> str:
    """What an experiment answers; nothing in its small form, which has other samples."""
    return "" if results["quick"] else story.answer(results["experiment"], results["samples"])


def _of_check(results: Mapping[str, Any], check: Mapping[str, Any]) -> str:
    """The two commits of a check, between brackets."""
    said = origins.commits(results, check)
    return f" ({said})" if said else ""


def _counts(results: Sequence[Mapping[str, Any]]) -> str:
    """How many of the checks of these experiments hold, by what they rest on."""
    return counts([check for one in results for check in one["checks"]])


def newer(provenance: Mapping[str, Any]) -> str | None:
    """How many commits changed the target or the emulator since results were measured; None where git cannot tell."""
    commit = origins.measured_at(provenance)
    if not origins.landed(commit):
        return None
    try:
        last = output(["git", "-C", ROOT, "log", "-1", "--format=%h", "--abbrev=12", "--", *CODE]).strip()
        count = int(output(["git", "-C", ROOT, "rev-list", "--count", f"{commit}..{last}", "--", *CODE]))
    except LabError:
        return None
    return (f"{count} commit{'s'[:count != 1]} of the target and the emulator {'are' if count != 1 else 'is'} newer, "
            f"up to {last}.")


def commits(experiment: str, provenance: Mapping[str, Any]) -> str:
    """Where the experiment was defined when it was measured, where it was measured, and whose checks judge it now."""
    commit = origins.measured_at(provenance)
    try:
        then, now = (origins.defined(experiment, at) for at in (commit or "HEAD", "HEAD"))
    except LabError:
        return ""
    return f"Defined in commit {then}, measured at {commit}, judged by the checks of {now}." if commit and now else ""


def _samples(results: Path, experiment: str) -> list[dict[str, Any]]:
    path = results / experiment / "results.json"
    return list(json.loads(path.read_text())["samples"]) if path.exists() else []


def _sample(results: Path, where: Where) -> dict[str, Any] | None:
    experiment, of = where
    return next((s for s in _samples(results, experiment) if all(s.get(k) == v for k, v in of.items())), None)


def _short(number: float) -> str:
    return f"{number / 1000:.{0 if number >= 9950 else 1}f}k" if number >= 1000 else f"{number:.0f}"


def _rate(sample: dict[str, Any], mark: str = "") -> str:
    """A rate, with its spread where it was measured several times."""
    said = f"{mark}{_short(sample['iops'])}{mark}"
    return f"{said} ({' to '.join(map(_short, spread(sample, 'iops')))})" if "iops" + LEAST in sample else said


def _times(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """How many times as much as theirs; the least that it can be where theirs is hardly the same twice."""
    (least, _), (their_least, their_most) = spread(ours, "iops"), spread(theirs, "iops")
    if their_most > 2 * their_least:
        return f"at least **{least / their_most:.0f}x**"
    return f"**{ours['iops'] / theirs['iops']:.1f}x**"


def _spreads(results: Path) -> str:
    """The figures that were measured several times, as a table."""
    rows = []
    for label, experiment, of, key, form, scale in HEADLINES:
        sample = _sample(results, (experiment, of))
        if sample and key + LEAST in sample:
            least, most = (f"{x / scale:{form}}" for x in spread(sample, key))
            rows.append(f"| {label} | {sample[key] / scale:{form}} | {least} to {most} |")
    return "\n".join(["", "| | median | least to most |", "|---|---|---|", *rows, "", ""])


def _width(results: Path) -> str:
    """How throughput grows with the cores where what CPUs share costs time; nothing without results of width."""
    multi, few = (_sample(results, ("width", {"clock": "caches", "line": "multi", "cpus": cpus})) for cpus in (32, 8))
    if not multi or not few:
        return ""
    return ("\nIn the second, four times the cores and users give "
            f"**{100 * multi['iops'] / (4 * few['iops']):.0f}%** of four times the throughput.")


def _units(results: Path) -> str:
    """What one buffer takes with the default write unit, which the first row does not have; nothing without width."""
    shares = []
    for clock in ("plain", "caches"):
        single, multi = (_sample(results, ("width", {"clock": clock, "line": line, "cpus": 8}))
                         for line in ("single", "multi"))
        if not single or not multi:
            return ""
        shares.append(f"**{100 * single['iops'] / multi['iops']:.0f}%**")
    return (f"\nWith up to 32 blocks a command, the default, one buffer takes {shares[0]} of dm-mtftl's writes\n"
            f"with 8 users, and {shares[1]} if caches are modelled ([width](results/width/README.md)).")


def headline(results: Path) -> str:
    """The README's numbers, each beside what there is instead; nothing while there are none."""
    raw = _sample(results, ("scaling", {"profile": "tlc", "line": "raw", "users": 8}))
    rows, first = [], None
    for load, our_place, instead, their_place in COMPARED:
        ours, theirs = _sample(results, our_place), _sample(results, their_place)
        if ours and theirs:
            first = first or ours
            rows.append(f"| {load} | {_rate(ours, '**')} | {instead}: {_rate(theirs)} | {_times(ours, theirs)} |")
    if not raw or not first:
        return ""
    return "\n".join(["", "| 4 KiB random writes a second | dm-mtftl | instead | |", "|---|---|---|---|", *rows, "",
                      f"The first row is **{100 * first['iops'] / raw['iops']:.0f}%** of what the raw drive takes from "
                      f"eight sequential writers.{_width(results)}{_units(results)}", "", ""])


def update_readme(text: str, results: Path) -> str:
    """The README with its numbers as the results are."""
    before, rest = text.split(_NUMBERS)
    return before + _NUMBERS + "\n" + headline(results) + rest[rest.index(_END):]


def update_spreads(text: str, results: Path) -> str:
    """docs/lab/experiments.md with its table of spreads as the results are."""
    before, rest = text.split(_SPREAD[0])
    return before + _SPREAD[0] + "\n" + _spreads(results) + rest[rest.index(_SPREAD[1]):]


def found(results: Mapping[str, Any]) -> str:
    """An experiment's results as Markdown: its table, what the sources say of it, and what was missed."""
    head, *rows = (" | ".join(row) for row in results["table"])
    lines = [f"| {head} |", "|" + "---|" * len(results["table"][0]), *(f"| {row} |" for row in rows), "",
             story.verdicts(results["checks"])]
    return "\n".join(lines) + "\n"


def experiment_pages() -> list[Path]:
    """The pages of the experiments, beside their results; an experiment that was not measured yet has one, too."""
    return [path for path in sorted(RESULTS / name / "README.md" for name in names()) if path.exists()]


def update_experiment(text: str, results: Path, now: bool = False) -> str:
    """An experiment's page with question, answer and what was found as the results are, or that there are none yet.

    How many commits are newer is counted anew `now`; else what the page says of it stays.
    """
    def section(match: re.Match[str]) -> str:
        path = results / match[3] / "results.json"
        if not path.exists():
            return f"{match[1]}\n\n{story.NOT_YET.capitalize()}\n\n{match[4]}"
        one = json.loads(path.read_text())
        if match[2] == "found":
            return f"{match[1]}\n\n{found(one)}\n{match[4]}"
        said = _NEWER.search(text)
        count = (newer(one["provenance"]) if now else None) or (said[0] if said else "")
        return f"{match[1]}\n\n{story.opening(one, count)}\n{match[4]}"

    return re.sub(r"(<!-- (asked|found): (\S+) -->)\n.*?(<!-- end of \2 -->)", section, text, flags=re.S)


def update_index(text: str, results: Path) -> str:
    """results/README.md with the story as the results are."""
    before, rest = text.split(_STORY)
    return f"{before}{_STORY}\n\n{story.index(results)}\n{rest[rest.index(_STORY_END):]}"


def _report(args: argparse.Namespace) -> int:
    if args.readme:
        for path, update in ((ROOT / "README.md", update_readme), (RESULTS / "suites/README.md", suites.update_page),
                             (RESULTS / "boots/README.md", boots.update_page),
                             (ROOT / "docs/lab/experiments.md", update_spreads), (RESULTS / "README.md", update_index)):
            path.write_text(update(path.read_text(), args.results))
        for path in experiment_pages():
            path.write_text(update_experiment(path.read_text(), args.results, now=True))
        for path, declared in ((ROOT / "docs/lab/commands.md", args.commands),
                               (ROOT / "docs/lab/guests.md", options.update_docs),
                               (ROOT / "docs/emulator/properties.md", properties.update_page),
                               (ROOT / "docs/lab/tested.md", tested.update_page),
                               (ROOT / "docs/use/drives.md", drives.update_page)):
            path.write_text(declared(path.read_text()))
    debian.ensure("report")
    write_file(args.out, page(args.results))
    say(f"the report is {args.out}")
    return 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
                update_commands: Callable[[str], str]) -> None:
    """`report` on the command line of scripts/lab; update_commands writes the page of all commands."""
    parser = commands.add_parser("report", help="write one HTML page of all results")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR",
                        help="folder with the results; default: results")
    parser.add_argument("--out", type=Path, default=BUILD / "report.html", metavar="FILE",
                        help="the page; default: report.html in the build folder")
    parser.add_argument("--readme", action="store_true",
                        help="write numbers into README.md, docs/ and results/, and into docs/ what is declared in "
                             "code: options, commands, properties, tests, drives")
    parser.set_defaults(function=_report, commands=update_commands)

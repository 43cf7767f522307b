# SPDX-License-Identifier: GPL-2.0
"""One self-contained HTML page of all results: figures, tables, checks, and how to repeat them."""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..build import debian
from ..exp.experiments import LEAST, spread
from ..exp.results import RESULTS, bound, measured
from ..run import options
from ..util.base import BUILD, ROOT, LabError, say, write_file
from . import suites

TEMPLATE = Path(__file__).with_name("report.html.j2")
_NUMBERS, _END = "<!-- numbers: scripts/lab report --readme -->", "<!-- end of numbers -->"
# What the README shows with its spread: its words, which experiment's sample, which field, how it is written.
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

    found = sorted(folder.glob("*/results.json"))
    if not found:
        raise LabError(f"no results in {folder}; scripts/lab exp NAME makes them")
    results = [json.loads(path.read_text()) for path in found]
    figures = {r["experiment"]: _svg(path.with_name("figure.svg"), r["experiment"])
               for r, path in zip(results, found, strict=True)}
    template = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined).from_string(
        TEMPLATE.read_text())
    return str(template.render(experiments=results, figures=figures, held=_held, measured=measured, bound=bound))


def _held(results: Sequence[Mapping[str, Any]]) -> str:
    """How many of the checks of these experiments hold."""
    checks = [check for one in results for check in one["checks"]]
    return f"{sum(check['pass'] for check in checks)} of {len(checks)}"


def _samples(results: Path, experiment: str) -> list[dict[str, Any]]:
    path = results / experiment / "results.json"
    return list(json.loads(path.read_text())["samples"]) if path.exists() else []


def _spreads(results: Path) -> str:
    """The README's table of figures that were measured several times."""
    rows = []
    for label, experiment, of, key, form, scale in HEADLINES:
        for sample in _samples(results, experiment):
            if key + LEAST in sample and all(sample.get(k) == v for k, v in of.items()):
                least, most = (f"{x / scale:{form}}" for x in spread(sample, key))
                rows.append(f"| {label} | {sample[key] / scale:{form}} | {least} to {most} |")
    head = ["", "A run repeats to the bit; how much is chance? The same with other random numbers, at other moments:",
            "", "| | median | least to most |", "|---|---|---|"]
    return "\n".join([*head, *rows, ""]) if rows else ""


def _width(results: Path) -> str:
    """The same with caches, where what CPUs share costs time: from the results of width, if there are any."""
    iops = {(s["line"], s["cpus"]): s["iops"] for s in _samples(results, "width") if s["clock"] == "caches"}
    if not iops:
        return ""
    multi, single, few = iops["multi", 32], iops["single", 32], iops["multi", 8]
    return ("With the caches of a server modelled, where a line that moves between cores costs its time:\n"
            f"32 users on 32 cores write **{multi / 1000:.0f}k** a second, **{multi / single:.1f}x** one buffer and "
            f"one writer,\nand **{100 * multi / (4 * few):.0f}%** of four times what 8 write on 8 cores.\n")


def headline(results: Path) -> str:
    """The README's numbers, from the results of scaling and width, and the spreads; nothing while there are none."""
    samples = _samples(results, "scaling")
    if not samples:
        return ""
    iops = {(s["profile"], s["line"], s["users"]): s["iops"] for s in samples}
    single, multi, raw = (iops["tlc", line, 8] for line in ("single", "multi", "raw"))
    return (f"Eight users on eight cores, 4 KiB random writes on a fresh TLC drive: **{multi / 1000:.0f}k** a second,\n"
            f"**{multi / single:.1f}x** what one buffer and one writer reach, and **{100 * multi / raw:.0f}%** of what "
            "the raw zoned drive takes\nfrom eight sequential writers; an instruction is a nanosecond there, and what "
            "cores share is free.\n" + _width(results) + _spreads(results))


def update_readme(text: str, results: Path) -> str:
    """The README with its numbers as the results are."""
    before, rest = text.split(_NUMBERS)
    return before + _NUMBERS + "\n" + headline(results) + rest[rest.index(_END):]


def found(results: Mapping[str, Any]) -> str:
    """An experiment's results as Markdown: its table, how many predictions hold, and what is known about the others."""
    head, *rows = (" | ".join(row) for row in results["table"])
    lines = [f"| {head} |", "|" + "---|" * len(results["table"][0]), *(f"| {row} |" for row in rows), ""]
    misses = [c for c in results["checks"] if not c["pass"]]
    lines.append(f"{len(results['checks']) - len(misses)} of {len(results['checks'])} predictions hold."
                 + (" Missed:" if misses else ""))
    lines += [""] if misses else []
    lines += [f"- {c['name']}: {measured(c)}, predicted {bound(c)}. {c.get('analysis', '')}".rstrip()
              for c in misses]
    return "\n".join(lines) + "\n"


def update_experiments(text: str, results: Path) -> str:
    """docs/experiments.md with what was found as the results are; nothing where there are none."""
    def section(match: re.Match[str]) -> str:
        path = results / match[2] / "results.json"
        middle = f"\n{found(json.loads(path.read_text()))}\n" if path.exists() else ""
        return f"{match[1]}\n{middle}{match[3]}"

    return re.sub(r"(<!-- found: (\S+) -->)\n.*?(<!-- end of found -->)", section, text, flags=re.S)


def _report(args: argparse.Namespace) -> int:
    if args.readme:
        for path, update in ((ROOT / "README.md", update_readme), (ROOT / "docs/experiments.md", update_experiments),
                             (ROOT / "docs/testing.md", suites.update_testing)):
            path.write_text(update(path.read_text(), args.results))
        lab = ROOT / "docs/lab.md"
        lab.write_text(options.update_docs(lab.read_text()))
    debian.ensure("report")
    write_file(args.out, page(args.results))
    say(f"the report is {args.out}")
    return 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`report` on the command line of scripts/lab."""
    parser = commands.add_parser("report", help="one HTML page of all results")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--out", type=Path, default=BUILD / "report.html", metavar="FILE")
    parser.add_argument("--readme", action="store_true",
                        help="write the numbers into README.md and docs, and the options of `lab run` into docs/lab.md")
    parser.set_defaults(function=_report)

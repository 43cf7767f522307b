# SPDX-License-Identifier: GPL-2.0
"""All commands of the lab with their options, as docs/lab/commands.md lists them, read from the parser."""

import argparse
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from ..run.options import Options

_TABLE, _END = "<!-- commands: scripts/lab report --readme -->", "<!-- end of commands -->"
_OF_RUNS = {one.name for one in fields(Options)}     # docs/lab/guests.md lists these

Groups = Mapping[str, Sequence[str]]


def parsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    return next(dict(action.choices) for action in parser._actions
                if isinstance(action, argparse._SubParsersAction))


def flags(parser: argparse.ArgumentParser) -> set[str]:
    """The long options of a command."""
    return {flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")}


def _row(action: argparse.Action) -> str:
    value = str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper())
    names = ", ".join(action.option_strings)
    shown = names if names and action.nargs == 0 else f"{names} {value}".strip()
    said = (action.help or "") % {"default": action.default}
    return f"| `{shown}` | {said} |".replace(f"`{shown}`", f"`{shown}`".replace("|", "\\|"))


def _command(name: str, said: str, parser: argparse.ArgumentParser, of_runs: Mapping[str, str | None]) -> Iterator[str]:
    actions = [action for action in parser._actions if action.dest != "help"]
    shared = [action for action in actions if action.help and of_runs.get(action.dest) == action.help]
    yield from ("", f"### lab {name}", "", f"{said[0].upper()}{said[1:]}.")
    if shared:
        actions = [action for action in actions if action not in shared]
        yield from ("", "It has these [options of a run](guests.md#options):",
                    *textwrap.wrap(f"{', '.join(f'`{action.option_strings[0]}`' for action in shared)}.", 100,
                                   break_on_hyphens=False))
    if actions:
        yield from ("", "| | |", "|---|---|", *map(_row, actions))


def _lines(parser: argparse.ArgumentParser, groups: Groups) -> Iterator[str]:
    helps = {action.dest: str(action.help) for top in parser._actions
             if isinstance(top, argparse._SubParsersAction) for action in top._choices_actions}
    of = parsers(parser)
    of_runs = {action.dest: action.help for action in of["run"]._actions if action.dest in _OF_RUNS}
    for group, names in groups.items():
        yield from ("", f"## {group.rstrip(':')}")
        for name in names:
            yield from _command(name, helps[name], of[name], of_runs)


def update_page(text: str, parser: argparse.ArgumentParser, groups: Groups) -> str:
    """The page as the parser is."""
    before, rest = text.split(_TABLE)
    return f"{before}{_TABLE}\n" + "\n".join(_lines(parser, groups)) + f"\n\n{rest[rest.index(_END):]}"

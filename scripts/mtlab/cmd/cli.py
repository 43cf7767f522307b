# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/lab."""

import argparse
import json
import re
import sys
from pathlib import Path

from ..build import debian, emulator, guest, kernels, target
from ..exp import experiments as exp
from ..run import accel, failure, machine
from ..run.options import Options, add_options, options_from, profiles
from ..run.outcome import write_pulled
from ..util import stop
from ..util.base import LabError, say
from . import (
    boots,
    bugs,
    c2c,
    completion,
    coverage,
    cuts,
    drives,
    experiments,
    fuzz,
    layers,
    mutants,
    night,
    prose,
    quality,
    reference,
    report,
    schedules,
    shell,
    simulate,
    suites,
    timeline,
    top,
    torture,
    traced,
    upstream,
    view,
    vm,
    worker,
)

# What `lab --help` shows, by what it is for.
GROUPS = {
    "Run something:": ("run", "shell", "vm", "top", "view", "c2c", "timeline"),
    "Measure:": ("demo", "exp", "diff", "report", "simulate", "firmware", "replay"),
    "Break it:": ("torture", "cuts", "bugs", "schedules", "boots", "drives", "fuzz", "mutants", "coverage", "suite",
                  "night"),
    "Change it:": ("check", "test", "lint", "layers", "prose"),
    "On many machines:": ("worker",),
    "Build and install:": ("build", "install", "upstream", "completion"),
}


def _accel(options: Options) -> str:
    return "tcg" if options.clock == "virtual" else accel.choose()


def _run(args: argparse.Namespace) -> int:
    options = options_from(args)
    machine.check(options)
    chosen = _accel(options)

    def show(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def show_console(text: str) -> None:
        sys.stderr.write(text)

    result = machine.run(" ".join(args.command), options, accel=chosen, on_output=show,
                         on_console=show_console if args.verbose else None)
    write_pulled(result.files, args.out)
    if args.verbose:
        say(f"{result.accel}, start {result.start}, {result.seconds:.1f} s, inputs {result.inputs}")
    if args.console:
        args.console.write_text(result.console)
    if result.failure:
        print(f"lab: {result.failure}", file=sys.stderr)
    if args.json:
        args.json.write_text(json.dumps({
            "status": result.status, "failure": result.failure.kind if result.failure else None,
            "seconds": result.seconds, "inputs": result.inputs, "accel": result.accel,
            "start": result.start}, indent=1) + "\n")
    return result.status


def _c2c(args: argparse.Namespace) -> int:
    options = options_from(args)
    options.clock, options.pull = "virtual", [c2c.KALLSYMS]
    options.memory_model = options.memory_model or "server"
    machine.check(options)
    command = c2c.wrapped(" ".join(args.command))
    with machine.folder() as place:
        options.sharing = args.keep or place / "sharing"
        result = machine.run(command, options, accel=_accel(options), on_output=lambda text: print(text, end=""))
        if result.failure:
            print(f"lab: {result.failure}", file=sys.stderr)
        if not result.ok:
            return result.status
        symbols = c2c.Symbols(result.files[c2c.KALLSYMS].decode())
        ours = target.module(kernels.get(options.kernel)) if options.module else None
        modules = [c2c.Module(ours, target.SOURCE, symbols)] if ours else []
        modules += [c2c.Module(ko, ko.parent, symbols) for ko in args.names]
        said = re.findall(r"^operations (\d+)$", result.output, re.M)
        shared, missed = c2c.parse(options.sharing.read_text())
        text = c2c.Report(shared, missed, symbols, modules).text(int(said[-1]) if said else 0, args.lines)
        print(text + (c2c.compared(args.against.read_text(), text, args.lines) if args.against else ""), end="")
    return 0


def _build(args: argparse.Namespace) -> int:
    what = args.what
    if what in ("emulator", "all"):
        print(emulator.build())
    if what in ("guest", "all"):
        print(guest.tools())
        for series in kernels.SERIES:
            print(guest.modules(kernels.get(series)))
    if what in ("target", "all"):
        debian.ensure("build", "tool")
        for series in kernels.SERIES:
            print(target.module(kernels.get(series)))
        print(target.tool())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab", usage="lab COMMAND ...",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="which", required=True, metavar="COMMAND", prog="lab",
                                     help=argparse.SUPPRESS)

    run = commands.add_parser("run", help="run a command in a guest",
                              description="Boots a guest, runs a command in /root, returns its exit status. "
                              "Failures of the guest have exit statuses of their own: "
                              + ", ".join(f"{s} {k}" for k, (s, _) in failure.KINDS.items()) + ".",
                              usage="lab run [options] -- COMMAND")
    add_options(run)
    run.add_argument("--out", type=Path, default=Path("."), metavar="DIR",
                     help="folder for pulled files; default: this one")
    run.add_argument("--console", type=Path, metavar="FILE", help="keep the kernel's messages")
    run.add_argument("--json", type=Path, metavar="FILE", help="write how the run ended, for programs")
    run.add_argument("-v", "--verbose", action="store_true", help="show the kernel's messages too")
    run.add_argument("command", nargs="+", metavar="COMMAND", help="a line for bash")
    run.set_defaults(function=_run)

    shared = commands.add_parser("c2c", help="list the lines of memory that a command's CPUs share",
                                 description="Runs a command in virtual time with a model of memory and lists what "
                                 "moved from CPU to CPU. The command may bound what counts by count_on and count_off; "
                                 "where it prints a line `operations N` all is divided by N.",
                                 usage="lab c2c [options] -- COMMAND")
    add_options(shared, without=("clock", "pull", "host_root"))
    shared.add_argument("--names", type=Path, nargs="+", default=[], metavar="KO",
                        help="further modules whose structures get names; sources lie beside them")
    shared.add_argument("--keep", type=Path, metavar="FILE", help="keep the emulator's raw output")
    shared.add_argument("--against", type=Path, metavar="FILE",
                        help="output of an earlier run: list what has changed")
    shared.add_argument("--lines", type=int, default=c2c.LISTED, metavar="N", help="how many of each kind to list")
    shared.add_argument("command", nargs="+", metavar="COMMAND", help="a line for bash")
    shared.set_defaults(function=_c2c)

    build = commands.add_parser("build", help="build parts without running them")
    build.add_argument("what", choices=("emulator", "guest", "target", "all"), help="which part")
    build.set_defaults(function=_build)

    shell.add_command(commands)
    vm.add_command(commands)
    experiments.add_commands(commands)
    report.add_command(commands, update_commands)
    torture.add_command(commands)
    cuts.add_command(commands)
    bugs.add_command(commands)
    schedules.add_command(commands)
    boots.add_command(commands)
    drives.add_command(commands)
    mutants.add_command(commands)
    coverage.add_command(commands)
    suites.add_command(commands)
    top.add_command(commands)
    view.add_command(commands)
    timeline.add_command(commands)
    quality.add_commands(commands)
    layers.add_commands(commands)
    prose.add_commands(commands)
    simulate.add_commands(commands)
    traced.add_commands(commands)
    fuzz.add_command(commands)
    night.add_command(commands)
    upstream.add_command(commands)
    worker.add_command(commands)
    completion.add_command(commands, parser, _words())
    parser.description = _overview(commands)
    return parser


def update_commands(text: str) -> str:
    """docs/lab/commands.md as the parser is."""
    return reference.update_page(text, _parser(), GROUPS)


def _words() -> dict[str, list[str]]:
    """What may be typed, and the parser does not know."""
    return {"exp": exp.names(), "diff": exp.names(),
            "--profile": profiles()}


def _overview(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> str:
    """All commands with their help, by what they are for."""
    helps = {action.dest: action.help for action in commands._choices_actions}
    lines = ["Builds the parts of dm-mtftl and runs commands in a guest with an emulated zoned flash drive."]
    for group, names in GROUPS.items():
        lines += ["", group, *(f"  {name:12}{helps[name]}" for name in names)]
    return "\n".join([*lines, "", "`lab COMMAND --help` has the options, docs/lab/ more; `make help` lists "
                      "short ways."])


def main() -> int:
    stop.end_cleanly_on_signals()
    try:
        args = _parser().parse_args()
        return int(args.function(args))
    except LabError as e:
        print(f"lab: {e}", file=sys.stderr)
        return failure.KINDS["setup"][0]
    except KeyboardInterrupt:
        print("lab: interrupted", file=sys.stderr)
        return 130

# SPDX-License-Identifier: GPL-2.0
"""`lab timeline`: which CPU inserted, composed, sent and completed blocks, over time, from the target's tracepoints.

A CPU is a row. Above its line are the blocks that enter buffers there, below it those that a writer takes out of them
into units. A second panel has what was sent to the drive, and what the drive completed. It is figure 7 of the MT-FTL
paper, for any run.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..build import debian
from ..exp import traces
from ..exp.results import format_table
from ..exp.traces import KINDS, Event
from ..run import accel, machine
from ..run.options import add_options, options_from
from ..util.base import LabError, say

STEPS = 160                 # of the time that is drawn
TRACE = "timeline.trace"
BUFFER_KB = 8192            # of the trace, for each CPU; what comes when it is full is lost
# What a command may say: trace from here on, and no further.
_WRAPPED = """T=/sys/kernel/tracing
trace_off() {{ echo 0 >$T/tracing_on; }}
trace_on() {{ echo 1 >$T/tracing_on; }}
echo {size} >$T/buffer_size_kb; echo 0 >$T/options/overwrite
trap 'status=$?; trace_off; grep mtftl_ $T/trace >{file}; exit $status' EXIT
{first}
for event in {events}; do echo 1 >$T/events/mtftl/mtftl_$event/enable; done
{command}"""
WORDS = (("inserted", "composed"), ("sent", "completed"))


def wrapped(command: str) -> str:
    """A command that is traced, from trace_on on where it says that, and brings the trace along."""
    return _WRAPPED.format(size=BUFFER_KB, first="trace_off" if "trace_on" in command else "trace_on",
                           events=" ".join(KINDS.values()), command=command, file=TRACE)


def draw(events: Sequence[Event], path: Path, start_ms: float = 0, end_ms: float = 0) -> None:
    """PATH.svg: a row a CPU, from start to end; 0: to the last event."""
    from ..exp import figures  # other commands do without matplotlib

    start, end = round(1000 * start_ms), round(1000 * end_ms) or events[-1].us + 1
    if not start < end:
        raise LabError(f"nothing to draw from {start_ms:g} to {end / 1000:g} ms")
    cpus = sorted({event.cpu for event in events})
    figure, panels = figures.panels(len(WORDS), columns=1)
    figure.set_size_inches(figures.PAGE, len(WORDS) * (1.2 + 0.4 * len(cpus)))
    for panel, (above, below) in zip(panels, WORDS, strict=True):
        rows = {f"CPU {cpu}": tuple(traces.rates(events, kind, cpu, start, end, STEPS) for kind in (above, below))
                for cpu in cpus}
        figures.timeline(panel, rows, (start / 1000, end / 1000), (above, below), x="time (ms)",
                         title=f"blocks {above}, {below}")
    figures.save(figure, path)


def _events(text: str, what: str) -> list[Event]:
    events = traces.parse(text)
    if not events:
        raise LabError(f"{what}: no event of the target, expected lines such as "
                       "'[002] ..... 12.345678: mtftl_insert: 253,0 lane 2 lba 8 + 1 used 5'")
    return events


def _timeline(args: argparse.Namespace) -> int:
    debian.ensure("figures")
    status = 0
    if args.trace:
        if args.command:
            raise LabError("--trace draws what was recorded, and runs no command")
        text, what = args.trace.read_text(), str(args.trace)
    elif args.command:
        options = options_from(args)
        options.pull = [TRACE]
        machine.check(options)
        chosen = "tcg" if options.clock == "virtual" else accel.choose()
        result = machine.run(wrapped(" ".join(args.command)), options, accel=chosen,
                             on_output=lambda text: print(text, end=""))
        if result.failure:
            raise LabError(f"{result.failure}")
        status, text, what = result.status, result.files[TRACE].decode(), "the command"
        args.out.with_suffix(".trace").write_text(text)
    else:
        raise LabError("no command and no --trace: lab timeline -- COMMAND, or lab timeline --trace FILE")
    events = _events(text, what)
    draw(events, args.out.with_suffix(""), args.start, args.end)
    say(f"{len(events)} events of {events[-1].us / 1000:.1f} ms, in {args.out.with_suffix('.svg')}")
    print(format_table(traces.totals(events)))
    return status


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`timeline` on the command line of scripts/lab."""
    parser = commands.add_parser(
        "timeline", help="draw which CPU inserted, composed, sent and completed blocks, over time",
        usage="lab timeline [options] -- COMMAND\n       lab timeline --trace FILE [--out FILE] [--from MS] [--to MS]",
        description="Runs a command with the target's tracepoints on, or reads a trace, and draws which CPU did what "
        "when, as SVG. The command may bound what is traced by trace_on and trace_off. Tracing costs about a "
        "microsecond a block.")
    add_options(parser, without=("pull", "host_root"))
    parser.add_argument("--trace", type=Path, metavar="FILE", help="draw this trace; no guest is started")
    parser.add_argument("--out", type=Path, default=Path("timeline.svg"), metavar="FILE",
                        help="the figure, with the trace of a run beside it; default: %(default)s")
    parser.add_argument("--from", dest="start", type=float, default=0, metavar="MS",
                        help="leave out MS milliseconds after the first event")
    parser.add_argument("--to", dest="end", type=float, default=0, metavar="MS",
                        help="draw no further; default: the last event")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="a line for bash")
    parser.set_defaults(function=_timeline)

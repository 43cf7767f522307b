# SPDX-License-Identifier: GPL-2.0
"""`lab view`: a page that shows a watched run's flash and FTL over time, live or afterwards.

The page reads the two streams that `--watch FOLDER` leaves (`lab top` says which), as they are: what they say of an
instant is computed in the page alone, view.html. Saved, the page carries both; served, it asks for what is new.
"""

import argparse
import contextlib
import html
import http.server
import json
import os
import re
import urllib.parse
from pathlib import Path

from ..run.qemu import RUN
from ..util.base import LabError, say, write_file

TEMPLATE = Path(__file__).with_name("view.html")
STREAMS = ("flash", "ftl")
ADDRESS = "127.0.0.1"       # browsers of this machine
AT_ONCE = 4 << 20           # bytes of an answer


def _whole_lines(path: Path) -> str:
    """A stream up to its last whole line, fit for the inside of a page."""
    data = path.read_bytes() if path.exists() else b""
    return data[:data.rfind(b"\n") + 1].decode(errors="replace").replace("<", "\\u003c")


def page(folder: Path, *, live: bool) -> str:
    """The page of a run: with its streams, or with none and asking for them."""
    filled = {"NAME": html.escape(folder.resolve().name), "LIVE": json.dumps(live),
              **{name.upper(): "" if live else _whole_lines(folder / name) for name in STREAMS}}
    return re.sub(f"@({'|'.join(filled)})@", lambda found: filled[found[1]], TEMPLATE.read_text())


def check(folder: Path) -> None:
    """Refuse a folder that no watched run has."""
    if not any((folder / name).is_file() for name in STREAMS):
        raise LabError(f"{folder}: neither {' nor '.join(STREAMS)} is there, expected the folder of `lab run --watch`")


def beyond(path: Path, start: int) -> bytes | None:
    """What a stream has from a byte on; None: it is shorter than that, so another run began."""
    with open(path, "rb") as f:
        if start > os.fstat(f.fileno()).st_size:
            return None
        f.seek(start)
        return f.read(AT_ONCE)


def run_of(folder: Path) -> str:
    """Which run the streams of a folder are of; "": they are not of a run of the lab."""
    with contextlib.suppress(OSError):
        return (folder / RUN).read_text().strip()
    return ""


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers with the page, and with what a stream has beyond ?from=BYTES.

    Each answer names the run. The name is read after the stream, and a run writes its name before it empties the
    streams: so no page takes one run's lines for another's.
    """

    folder: Path

    def do_GET(self) -> None:
        """The page or a part of a stream."""
        asked = urllib.parse.urlsplit(self.path)
        name, start = asked.path.removeprefix("/"), urllib.parse.parse_qs(asked.query).get("from", ["0"])[0]
        if not name:
            self._answer(200, "text/html", page(self.folder, live=True).encode())
        elif name in STREAMS and start.isdecimal() and (self.folder / name).is_file():
            data = beyond(self.folder / name, int(start))
            self._answer(416 if data is None else 200, "text/plain", data or b"")
        else:
            self._answer(404, "text/plain", b"lab view: no such thing\n")

    def _answer(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Run", run_of(self.folder))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """A page asks twice a second: that is no news."""


def server(folder: Path, port: int) -> http.server.ThreadingHTTPServer:
    """A server of that run's page; port 0: any that is free."""
    try:
        return http.server.ThreadingHTTPServer((ADDRESS, port), type("Handler", (_Handler,), {"folder": folder}))
    except OSError as e:
        raise LabError(f"--port {port}: {e.strerror}") from None


def _view(args: argparse.Namespace) -> int:
    check(args.folder)
    if args.save:
        write_file(args.save, page(args.folder, live=False))
        say(f"{args.save}: the whole run, in one file")
        return 0
    with server(args.folder, args.port) as serving:
        print(f"http://{ADDRESS}:{serving.server_address[1]}/ until Ctrl-C", flush=True)
        serving.serve_forever()
    return 0


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`view` on the command line of scripts/lab."""
    parser = commands.add_parser("view", help="show a watched run on a page: dies, lanes, zones, latencies over time",
                                 description="Serves a page of a guest that `lab run` or `lab shell` started with "
                                 "--watch FOLDER: live while it runs, replayed at any speed afterwards.")
    parser.add_argument("folder", type=Path, metavar="FOLDER",
                        help="that `lab run --watch` or `lab shell --watch` was given")
    parser.add_argument("--save", type=Path, metavar="FILE",
                        help="write the page of what is recorded, in one file, and end")
    parser.add_argument("--port", type=int, default=8080, metavar="N",
                        help="of this machine, where the page is served; 0: any; default: %(default)s")
    parser.set_defaults(function=_view)

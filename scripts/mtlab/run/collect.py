# SPDX-License-Identifier: GPL-2.0
"""How pytest finds tests that are shell scripts, and runs them. The lab itself works without pytest: scripts.py."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ..util.base import LabError
from .outcome import Result
from .scripts import Script, command, parse

ScriptRun = Callable[..., Result]


def run(folder: Path, request: pytest.FixtureRequest, lab_run: Callable[..., Result], helpers: Sequence[Path],
        name: str, *words: str, push: Sequence[Path] = (), device: dict[str, str] | None = None,
        **options: Any) -> Result:
    """Run a script with its arguments in a guest such as its header asks for; options are instead of the header's.

    A device's properties are instead of those alone. The script must end well.
    """
    script = parse(folder / f"{name}.sh")
    needed = [path for fixture in script.needs for path in request.getfixturevalue(fixture)]
    chosen = script.options | options
    if device:
        chosen["device"] = chosen.get("device", {}) | device
    result = lab_run(command(script, words), push=[*helpers, *needed, *push], **chosen)
    assert result.ok, f"exit status {result.status}\n{result.output}"
    return result


def _test(script: Script) -> Callable[..., None]:
    """The test function of a script that judges itself."""
    kernels = [pytest.param({"kernel": kernel}, id=kernel) for kernel in script.kernels]
    cases = [pytest.param([case], id=case) for case in script.cases]

    def test(run_script: ScriptRun, words: list[str], options: dict[str, str]) -> None:
        run_script(script.path.stem, *words, **options)

    if kernels:
        test = pytest.mark.parametrize("options", kernels)(test)
    if cases:
        test = pytest.mark.parametrize("words", cases)(test)
    test.__doc__ = script.shows
    return test


class ScriptFile(pytest.Module):
    """A script as pytest sees it: a module of one test, with the script's name."""

    def _getobj(self) -> ModuleType:
        try:
            script = parse(self.path)
        except LabError as e:
            raise self.CollectError(str(e)) from None
        module = ModuleType(self.path.stem)
        module.__doc__ = script.shows
        if not script.judge:
            setattr(module, f"test_{self.path.stem}", _test(script))
        return module


def collect(path: Path, folder: Path, parent: pytest.Collector) -> ScriptFile | None:
    """For the hook pytest_collect_file of a conftest beside the folder of scripts."""
    if path.suffix != ".sh" or path.parent != folder:
        return None
    found: ScriptFile = ScriptFile.from_parent(parent, path=path)
    return found

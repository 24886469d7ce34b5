"""The command `doctor`. It imports nothing that may be broken: `diagnosis` tries that."""

import json as jsonlib
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trilens.cli.diagnosis import Diagnosis, diagnose
from trilens.cli.requirements import Extra
from trilens.errors import TrilensError


def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False) -> None:
    """Examine this installation: versions, machine, extras, plug-ins, caches, and a small index and search.

    Exit code 1 if something does not work, with a line per problem on standard error.

    Examples:

      trilens doctor

      trilens doctor --json
    """
    found = diagnose()
    if json:
        sys.stdout.write(jsonlib.dumps(asdict(found), ensure_ascii=False) + "\n")
    else:
        _print(found)
    for problem in found.problems:
        sys.stderr.write(f"problem: {problem}\n")
    if found.problems:
        raise TrilensError(f"{len(found.problems)} of the checks failed: see the lines above")


def _print(found: Diagnosis) -> None:
    test = found.self_test
    rows = {
        "versions": ", ".join(f"{name} {version or 'is missing'}" for name, version in found.versions.items()),
        "platform": str(found.machine["platform"]),
        "cores": f"{found.machine['cores for this process']} of {found.machine['cores']}",
        "instruction sets": ", ".join(found.machine["instruction sets"]) or "none that trilens knows",
        "extras": "\n".join(_extra(extra) for extra in found.extras),
        "plug-ins": "\n".join(f"{name} = {value}" for name, value in found.plug_ins.items()) or "none",
        "kernels": _kernels(found.kernels) if found.kernels else "",
        "caches": "\n".join(f"{folder}: {size / 1e6:,.1f} MB" for folder, size in found.caches.items()),
        "writable": "\n".join(f"{place}: {'yes' if free else 'no'}" for place, free in found.writable.items()),
        "self-test": f"{', '.join(test['lenses'])} answered in {test['seconds']} s" if test else "failed",
    }
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), Text(value, overflow="fold"))
    Console(highlight=False).print(table)


def _extra(extra: Extra) -> str:
    return f"{extra.name}: " + (f"{extra.install} adds {', '.join(extra.missing)}" if extra.missing else "installed")


def _kernels(kernels: dict[str, Any]) -> str:
    places = f", in {', '.join(kernels['folders'])}" if kernels["folders"] else "; there is no writable folder to keep them"
    others = "others are compiled when they are first used, or by `trilens warmup`"
    return f"{kernels['compiled']} of {kernels['of']} are compiled{places}; {others}"

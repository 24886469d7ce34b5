"""Fresh installations of source trees, as a new user makes them, and the time that their processes take."""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.contest import THREAD_VARIABLES
from benchmarks.record import ROOT

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
# What a new user does not have: other packages before those that are installed, caches, limits on threads, settings.
ABSENT = ("PYTHON", "NUMBA", "TRILENS", "XDG", "VIRTUAL_ENV", "CI", *(f"{library}_NUM_THREADS" for library in THREAD_VARIABLES))


@dataclass(frozen=True, slots=True)
class Usage:
    """Wall-clock time, and CPU time of all processes."""

    wall: float
    cpu: float


def add_before(parser: argparse.ArgumentParser) -> None:
    """Add the option for another checkout."""
    parser.add_argument("--before", type=Path, help="another checkout, measured first")


def trees(before: Path | None) -> dict[str, Path]:
    """The trees to measure by their names in rows."""
    return ({"before": before.resolve()} if before else {}) | {"this tree": ROOT}


def environment(home: Path | None = None) -> dict[str, str]:
    """The variables of a new user, with an empty home folder if one is given."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ABSENT)}
    return variables | ({"HOME": str(home)} if home else {})


def build(tree: Path, folder: Path) -> Path:
    """The wheel of a tree."""
    subprocess.run([*PIP, "wheel", "--no-deps", "--wheel-dir", folder, tree], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> tuple[Path, Path]:
    """The programs and the site-packages of a fresh environment with the wheel, without pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, env=environment())
    subprocess.run([*PIP, "--python", folder / "bin" / "python", "install", wheel], check=True, env=environment())
    (packages,) = folder.glob("lib/python*/site-packages")
    return folder / "bin", packages


def cpu_seconds() -> float:
    """CPU time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Stopwatch:
    """The time since it was created."""

    def __init__(self) -> None:
        self._wall, self._cpu = perf_counter(), cpu_seconds()

    def ended(self) -> Usage:
        """Usage, if all processes have ended."""
        return Usage(perf_counter() - self._wall, cpu_seconds() - self._cpu)

    def running(self, process: int) -> Usage:
        """Usage while one process still runs."""
        return Usage(perf_counter() - self._wall, cpu_seconds() - self._cpu + _cpu_of(process))


def _cpu_of(process: int) -> float:
    """CPU time of a running process and of those that it has waited for."""
    *_, fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")
    return sum(map(int, fields.split()[11:15])) / os.sysconf("SC_CLK_TCK")


def answers(command: Sequence[object], folder: Path, variables: Mapping[str, str]) -> tuple[str, Usage, Usage]:
    """The output of a command, and its usage until the first line that is not empty and until its end."""
    watch, lines, first = Stopwatch(), [], None
    words = [str(word) for word in command]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(words, cwd=folder, env=variables, text=True, stdin=nothing, stdout=pipe) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if first is None and line.strip():
                first = watch.running(process.pid)
            lines.append(line)
    if process.returncode or first is None:
        raise SystemExit(f"{' '.join(words)} failed with exit code {process.returncode}; it printed {len(lines)} lines")
    return "".join(lines), first, watch.ended()

"""What `trilens doctor` finds out about an installation, as data.

Functions import what they examine, so that a package that cannot be imported is a finding and not the end of the examination.
"""

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points
from pathlib import Path
from pkgutil import iter_modules
from time import perf_counter
from traceback import walk_tb
from typing import Any, TypeVar

from trilens import __version__
from trilens.cli.progress import progress_bar
from trilens.cli.requirements import Extra, dependencies, extras, problems
from trilens.errors import TrilensError
from trilens.text.files import shown, user_cache

INSTRUCTION_SETS = (
    *("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vnni", "avx512bf16", "avxvnni", "amx-int8", "amx-bf16"),
    *("neon", "dotprod", "i8mm", "bf16", "sve", "sve2"),
)
PLUG_INS = ("trilens.lenses", "trilens.readers")
TEXTS = {"pumps": "Centrifugal pumps move water.", "difflib": "Helpers for computing differences between sequences."}
QUERIES = {"pumps": "which machine moves water", "difflib": "compare two sequences"}
Finding = TypeVar("Finding")


@dataclass(slots=True)
class Diagnosis:
    """The findings. Each problem is one line: what does not work and what to do."""

    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    extras: list[Extra] = field(default_factory=list)
    plug_ins: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, Any] = field(default_factory=dict)
    caches: dict[str, int] = field(default_factory=dict)
    writable: dict[str, bool] = field(default_factory=dict)
    self_test: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def diagnose() -> Diagnosis:
    """Examine this installation."""
    found = Diagnosis()
    found.versions = {"trilens": __version__, "Python": platform.python_version()} | (_try(found, dependencies) or {})
    found.extras = _try(found, extras) or []
    found.problems += _try(found, problems) or []
    found.machine = {"platform": platform.platform(), **_cores(), "instruction sets": _try(found, _instruction_sets) or []}
    found.plug_ins = {f"{entry.group}: {entry.name}": entry.value for group in PLUG_INS for entry in entry_points(group=group)}
    found.problems += _try(found, _plug_in_problems) or []
    found.writable = {str(place): _is_writable(place) for place in (user_cache(), _temporary(), Path.cwd())}
    if not found.writable[str(user_cache())]:
        found.problems.append(f"{shown(user_cache())} cannot be written; set XDG_CACHE_HOME to a folder that can")
    found.self_test = _try(found, _self_test) or {}
    found.problems += found.self_test.pop("problems", [])
    found.kernels = _try(found, _kernels) or {}
    caches = (user_cache(), *map(Path, found.kernels.get("folders", ())))
    found.caches = {str(folder): _size(folder) for folder in caches}
    return found


def _try(found: Diagnosis, examine: Callable[[], Finding]) -> Finding | None:
    """The result of an examination; a failure is a problem, and None."""
    try:
        return examine()
    except PackageNotFoundError:
        problem = "trilens is not installed as a package, so its requirements are unknown; run `pip install .`"
    except TrilensError as error:
        problem = str(error)
    except ImportError as error:
        problem = f"{error.name or _raised_by(error)} cannot be imported ({_line(error)}); install trilens again"
    except (OSError, RuntimeError, ValueError, AttributeError) as error:
        problem = f"{examine.__name__.strip('_').replace('_', ' ')} failed: {type(error).__name__} ({_line(error)})"
    if problem not in found.problems:
        found.problems.append(problem)
    return None


def _raised_by(error: Exception) -> str:
    """The package whose code raised an error: packages that fail to load their own libraries may not name themselves."""
    *_, (frame, _number) = walk_tb(error.__traceback__)
    return str(frame.f_globals["__name__"]).partition(".")[0]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _cores() -> dict[str, int]:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": os.cpu_count() or 1, "cores for this process": available or 1}


def _instruction_sets() -> list[str]:
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return [name for name in INSTRUCTION_SETS if features.get(name)]


def _plug_in_problems() -> list[str]:
    from trilens.lenses.registry import lens_types
    from trilens.read.reader_table import reader_table

    problems = list(reader_table().problems)
    try:
        lens_types()
    except TrilensError as error:
        problems.append(str(error))
    return problems


def _size(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())


def _temporary() -> Path:
    """The folder of temporary files; without one, the self-test fails."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return Path(os.environ.get("TMPDIR", "/tmp"))


def _is_writable(place: Path) -> bool:
    """Whether files can be made in a folder, or in the nearest one that exists above it."""
    existing = next((folder for folder in (place, *place.parents) if folder.exists()), place)
    try:
        with tempfile.TemporaryFile(dir=existing):
            return True
    except OSError:
        return False


def _self_test() -> dict[str, Any]:
    """Index and search two documents by the default lenses, with progress: without compiled kernels this takes longer."""
    from trilens.collection import Collection
    from trilens.text.document import Document

    start = perf_counter()
    with progress_bar("self-test", 2, "steps") as work, tempfile.TemporaryDirectory(prefix="trilens-doctor-") as folder:
        with Collection.create(Path(folder) / "test.trilens") as collection:
            collection.add([Document(doc_id, text) for doc_id, text in TEXTS.items()])
        work(1)
        with Collection.open(Path(folder) / "test.trilens") as collection:
            wrong = [
                f"the lens {lens} did not find {doc_id!r} by {query!r}; run the tests of trilens on this machine"
                for lens in collection.lenses
                for doc_id, query in QUERIES.items()
                if [hit.doc_id for hit in collection.search([query], k=1, lenses=[lens])[0]] != [doc_id]
            ]
            lenses = collection.lenses
        work(1)
    return {"lenses": lenses, "seconds": round(perf_counter() - start, 2), "problems": wrong}


def _kernels() -> dict[str, Any]:
    """How many kernels are compiled, and where their machine code is cached."""
    import trilens.kernels

    for module in iter_modules(trilens.kernels.__path__):
        import_module(f"trilens.kernels.{module.name}")
    known = {
        (value.__module__, value.__name__): value.stats.cache_path
        for name, module in list(sys.modules.items())
        if name.startswith("trilens.kernels.")
        for value in vars(module).values()
        if hasattr(value, "py_func")
    }
    compiled = [
        name for (_, name), folder in known.items() if folder and any(True for _ in Path(folder).glob(f"*.{name}-*.nbi"))
    ]
    folders = sorted({folder for folder in known.values() if folder})
    return {"compiled": len(compiled), "of": len(known), "folders": folders}

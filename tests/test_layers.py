import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from importlinter.cli import lint_imports

from trilens.lenses.registry import BUILT_IN

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LONGEST_FILE = 400
LENSES = {known.name for known in BUILT_IN} | {known.stored_as for known in BUILT_IN}
DEFAULTS = {"cli/demo.py", "cli/mine.py", "search/fusion_presets.py", "store/config.py"}
HEADS = {"cli/disentangle.py", "explain/disentangle.py", "http/embeddings.py", "http/encoding.py", "http/status.py"}
HEAVY = {"faiss", "numba", "numpy", "onnxruntime", "torch"}


def imported(tree: ast.AST) -> Iterator[str]:
    """The first part of every absolute import, wherever in the file it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_packages_import_in_one_direction() -> None:
    assert lint_imports(str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True) == 0


def test_importing_trilens_loads_nothing_heavy() -> None:
    code = f"import sys, trilens; print(sorted({HEAVY!r} & set(sys.modules)), trilens.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.startswith("[] ")


def test_importing_the_client_loads_nothing_heavy_but_numpy() -> None:
    code = f"import sys, trilens.client; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout == "['numpy']\n"


def test_only_training_the_check_of_an_export_and_local_language_models_need_torch() -> None:
    assert len(SOURCES) > 20
    heavy = {"torch", "transformers", "sentence_transformers"}
    users = {path for path in SOURCES if heavy & set(imported(ast.parse(path.read_text())))}
    alone = {ROOT / "src/trilens/export/check.py", ROOT / "src/trilens/language/local.py"}
    assert alone < users and all(path.is_relative_to(ROOT / "src/trilens/train") for path in users - alone)


def test_only_exports_need_onnx() -> None:
    users = {path for path in SOURCES if {"onnx", "safetensors"} & set(imported(ast.parse(path.read_text())))}
    allowed = (ROOT / "src/trilens/export", ROOT / "src/trilens/train")
    assert users and all(any(path.is_relative_to(folder) for folder in allowed) for path in users)


def test_no_file_is_longer_than_a_head_can_hold() -> None:
    files = [path for folder in ("src", "tests", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.py")]
    assert [path for path in files if len(path.read_text().splitlines()) > LONGEST_FILE] == []


def test_class_names_are_unique() -> None:
    names = Counter(
        node.name for path in SOURCES for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_lens_names_outside_of_lenses_are_configuration() -> None:
    """Packages that deal with lenses read the registry; names of heads are names of what a model computes."""
    found = set()
    for path in SOURCES:
        package = path.relative_to(ROOT / "src/trilens").as_posix()
        if package.startswith(("cli/", "collection", "evaluate/", "explain/", "http/", "search/", "store/")):
            constants = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
            if any(value in LENSES for value in constants if isinstance(value, str)):
                found.add(package)
    assert found == DEFAULTS | HEADS


def environment() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT / "src"), "PATH": ""}

"""`trilens doctor` in processes of its own: a whole installation, and one in which several things do not work."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from trilens.cli import requirements
from trilens.cli.requirements import extras, problems

DOCTOR = "from trilens.cli.main import main; import sys; sys.argv = ['trilens', 'doctor', '--json']; main()"


PROGRESS = "self-test: "


def run(code: str, **environment: str) -> tuple[int, Any, list[str]]:
    """The exit code, the findings and the messages, without the progress of a self-test that takes long."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment)
    messages = [line for line in done.stderr.splitlines() if not line.startswith(PROGRESS)]
    return done.returncode, json.loads(done.stdout), messages


def test_a_self_test_that_takes_long_shows_its_progress() -> None:
    soon = "import trilens.cli.progress; trilens.cli.progress.LINE_SECONDS = 0.02; "
    done = subprocess.run([sys.executable, "-c", soon + DOCTOR], capture_output=True, text=True, check=True)
    first, *_ = done.stderr.splitlines()
    assert re.fullmatch(rf"{PROGRESS}.*\d of 2 steps in \d+ s", first)


def test_a_whole_installation_has_no_problems(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    code, found, messages = run(DOCTOR, XDG_CACHE_HOME=str(tmp_path), HOME=str(home))
    assert (code, messages, found["problems"]) == (0, [], [])
    assert found["versions"]["numpy"] == version("numpy")
    assert found["self_test"]["lenses"] == ["bm25", "dense", "multi"]
    assert found["kernels"]["compiled"] > 0  # those of the self-test, at least
    assert set(found["caches"]) == {str(tmp_path / "trilens"), *found["kernels"]["folders"]}
    assert all(found["caches"][folder] > 0 for folder in found["kernels"]["folders"])
    assert found["machine"]["cores"] >= found["machine"]["cores for this process"] >= 1
    assert found["writable"] == {str(tmp_path / "trilens"): True} | found["writable"]
    assert [path.name for path in home.rglob("*")] == []  # no package leaves identifiers or events there
    missing = {extra["name"]: extra["missing"] for extra in found["extras"]}
    assert missing["serve"] == [] and not {"dev", "doors", "bench"} & set(missing)  # those of contributors


def test_what_does_not_work_is_a_line_each(tmp_path: Path) -> None:
    """A package that cannot be imported, a plug-in that cannot be loaded and a cache that cannot be written."""
    (tmp_path / "file").touch()
    info = tmp_path / "plug_in-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[trilens.readers]\nmail = no_such_module:READER\n")
    broken = "import sys; sys.modules['onnxruntime'] = None; "
    code, found, messages = run(broken + DOCTOR, XDG_CACHE_HOME=str(tmp_path / "file"), PYTHONPATH=str(tmp_path))
    assert code == 1
    assert messages == [*(f"problem: {problem}" for problem in found["problems"]), messages[-1]]
    assert messages[-1] == f"trilens: {len(found['problems'])} of the checks failed: see the lines above"
    plug_in, cache, package = found["problems"]
    assert "no_such_module" in plug_in and "onnxruntime cannot be imported" in package
    assert f"{tmp_path}/file/trilens cannot be written; set XDG_CACHE_HOME" in cache
    assert found["plug_ins"] == {"trilens.readers: mail": "no_such_module:READER"}
    assert found["self_test"] == {}


def test_a_package_that_does_not_name_itself_is_found(tmp_path: Path) -> None:
    """As if a library of the package could not be loaded."""
    (tmp_path / "tokenizers").mkdir()
    (tmp_path / "tokenizers" / "__init__.py").write_text('raise ImportError("libfoo.so: cannot open")')
    code, found, _ = run(DOCTOR, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    expected = "tokenizers cannot be imported (libfoo.so: cannot open); install trilens again"
    assert (code, found["problems"]) == (1, [expected])


def test_requirements_are_those_of_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """An untested version and a missing package are unmet; an extra includes those of other extras but not the default ones."""
    assert problems() == []
    metadata = {
        "Requires-Dist": ["numpy>=999", "pytest", "absent>=2; extra == 'a'", "trilens[a]; extra == 'b'", "other; extra == 'b'"],
        "Provides-Extra": ["a", "b", "dev"],
    }

    class Metadata:
        def get_all(self, name: str) -> list[str]:
            return metadata[name]

    monkeypatch.setattr(requirements, "metadata", lambda _: Metadata())
    assert problems() == [f"numpy>=999 instead of {version('numpy')} is needed; run `pip install 'numpy>=999'`"]
    assert {extra.name: extra.missing for extra in extras()} == {"a": ("absent",), "b": ("absent", "other")}

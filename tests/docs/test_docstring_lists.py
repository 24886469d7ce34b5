"""The extension that renders aligned docstring lines as lists."""

from importlib.util import module_from_spec, spec_from_file_location

import pytest

pytest.importorskip("griffe", reason="the documentation is built with mkdocstrings")

from .pages import ROOT

DOCSTRING = """Settings.

docs    number of documents
terms   number of terms,
        at least 1

Values are plain."""


def test_aligned_lines_become_a_list() -> None:
    spec = spec_from_file_location("docstring_lists", ROOT / "docs" / "_build" / "docstring_lists.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    listed = module.with_lists(DOCSTRING)
    assert "\n- `docs`: number of documents\n- `terms`: number of terms,\n    at least 1\n" in listed
    assert module.with_lists("A sentence.\n\nAnother one.") == "A sentence.\n\nAnother one."

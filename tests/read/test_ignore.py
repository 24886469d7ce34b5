from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.read.ignore import ALL_FILES, Selection
from trilens.read.sources import SourceFile, find_files


def tree(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(root: Path, selection: Selection = ALL_FILES) -> list[str]:
    return [file.name for file in find_files(root, selection) if isinstance(file, SourceFile)]


def test_rules_of_deeper_folders_override_those_above(tmp_path: Path) -> None:
    tree(tmp_path, **{".gitignore": "*.txt\n!keep.txt\n/top.md\nbuild/\n", "a/.gitignore": "!*.txt\nsecret.txt\n"})
    tree(tmp_path, **dict.fromkeys(["x.txt", "keep.txt", "top.md", "a/top.md", "a/x.txt", "a/secret.txt", "b/build/x.md"], "t"))
    assert names(tmp_path) == ["a/top.md", "a/x.txt", "keep.txt"]


def test_trilensignore_has_the_last_word(tmp_path: Path) -> None:
    tree(tmp_path, **{".gitignore": "*.txt\n", ".trilensignore": "!notes.txt\n*.md\n!.github/\n"})
    tree(tmp_path, **dict.fromkeys(["notes.txt", "x.txt", "a.md", ".github/guide.html", ".git/x.html"], "t"))
    assert names(tmp_path) == [".github/guide.html", "notes.txt"]


def test_environments_caches_and_collections_are_left_out(tmp_path: Path) -> None:
    marked = ["env/pyvenv.cfg", "cache/CACHEDIR.TAG", "my.trilens/catalog.sqlite", "node_modules/a.md", "__pycache__/a.md"]
    tree(tmp_path, **dict.fromkeys([*marked, "env/a.md", "cache/a.md", "my.trilens/a.md", "a.md"], "t"))
    assert names(tmp_path) == ["a.md"]
    assert names(tmp_path / "env") == ["a.md", "pyvenv.cfg"]  # a folder that is named is read


def test_patterns_select_files_at_any_depth(tmp_path: Path) -> None:
    tree(tmp_path, **dict.fromkeys(["a.md", "a.txt", "sub/b.md", "sub/b.txt", "drafts/c.md"], "t"))
    assert names(tmp_path, Selection(include=("*.md",))) == ["a.md", "drafts/c.md", "sub/b.md"]
    assert names(tmp_path, Selection(exclude=("drafts/", "*.txt"))) == ["a.md", "sub/b.md"]
    assert names(tmp_path, Selection(include=("sub/**",), exclude=("*.txt",))) == ["sub/b.md"]


def test_a_pattern_that_is_none_is_an_error() -> None:
    with pytest.raises(BadInput, match=r"expected globs as in .gitignore"):
        Selection(include=("!",))

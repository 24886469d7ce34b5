import os
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.read.skipped import LEFT_OUT, Skipped
from trilens.read.sources import SourceFile, find_files


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def names(source: Path) -> list[str]:
    return [file.name for file in find_files(source) if isinstance(file, SourceFile)]


def test_a_folder_is_walked_in_sorted_order_without_hidden_and_unknown_files(tmp_path: Path) -> None:
    for name in ("b/2.txt", "b/10.md", "a.html", "c.jsonl", "picture.png", ".hidden.txt", ".git/x.txt", "README"):
        write(tmp_path / name)
    assert names(tmp_path) == ["a.html", "b/10.md", "b/2.txt", "c.jsonl"]


def test_a_beir_folder_gives_only_its_corpus_at_any_depth(tmp_path: Path) -> None:
    for name in ("de/corpus.jsonl", "de/queries.jsonl", "de/qrels/test.tsv", "en/corpus.jsonl.gz", "en/queries.jsonl"):
        write(tmp_path / name)
    assert names(tmp_path) == ["de/corpus.jsonl", "en/corpus.jsonl.gz"]
    assert names(tmp_path / "de") == ["corpus.jsonl"]
    skipped = [item for item in find_files(tmp_path / "de") if isinstance(item, Skipped)]
    assert [(item.name, item.unit, item.reason) for item in skipped] == [
        ("qrels", "folder", LEFT_OUT),
        ("queries.jsonl", "file", LEFT_OUT),
    ]


def test_loops_of_links_end(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x.txt")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a")
    assert names(tmp_path) == ["a/x.txt"]


def test_a_linked_folder_outside_is_read(tmp_path: Path) -> None:
    write(tmp_path / "outside" / "x.txt")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "link").symlink_to(tmp_path / "outside")
    assert names(tmp_path / "source") == ["link/x.txt"]


def test_a_link_to_nothing_is_passed_on_so_that_opening_it_fails(tmp_path: Path) -> None:
    (tmp_path / "x.txt").symlink_to(tmp_path / "gone.txt")
    assert names(tmp_path) == ["x.txt"]


def test_a_pipe_in_a_folder_is_not_opened(tmp_path: Path) -> None:
    write(tmp_path / "a.txt")
    os.mkfifo(tmp_path / "b.txt")
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_without_a_readable_file_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "picture.png")
    with pytest.raises(BadInput, match=r"holds no readable file; expected .jsonl.*\.gz"):
        names(tmp_path)


def test_missing_and_unknown_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"gone.txt does not exist"):
        names(tmp_path / "gone.txt")
    with pytest.raises(BadInput, match=r"picture.png has no known suffix; expected .jsonl"):
        names(write(tmp_path / "picture.png"))

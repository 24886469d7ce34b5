from pathlib import Path

import pytest

from trilens.text.files import SPOOLED, layout_file, shown, user_cache, without_compression


def test_a_path_is_shown_on_one_printable_line() -> None:
    assert shown(Path("a\nb/\udcff.txt")) == "a\\nb/\\udcff.txt"


def test_spooled_standard_input_is_shown_by_its_origin(tmp_path: Path) -> None:
    assert shown(tmp_path / SPOOLED) == "standard input"


@pytest.mark.parametrize(
    ("name", "plain"),
    [("a.jsonl.gz", "a.jsonl"), ("a.XZ", "a"), ("a.txt.bz2", "a.txt"), ("a.gz.txt", "a.gz.txt"), ("gz", "gz")],
)
def test_the_compression_suffix_is_removed(name: str, plain: str) -> None:
    assert without_compression(name) == plain


def test_a_layout_file_may_be_compressed(tmp_path: Path) -> None:
    assert layout_file(tmp_path, "corpus.jsonl") is None
    (tmp_path / "corpus.jsonl.xz").touch()
    assert layout_file(tmp_path, "corpus.jsonl") == tmp_path / "corpus.jsonl.xz"
    (tmp_path / "corpus.jsonl").touch()
    assert layout_file(tmp_path, "corpus.jsonl") == tmp_path / "corpus.jsonl"


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "trilens"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache() == Path.home() / ".cache" / "trilens"

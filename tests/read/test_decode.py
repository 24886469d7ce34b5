import bz2
import gzip
import io
import lzma
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.read import decode
from trilens.read.decode import Place, TextLines, open_bytes, read_text
from trilens.read.limits import ParsingLimits
from trilens.read.zstd import zstd as zstd_module

DATA = Path(__file__).parent / "data"


def zstd(content: bytes) -> bytes:
    """Compress with Zstandard; skip the test if it is not installed."""
    if zstd_module is None:
        pytest.skip("needs Zstandard")
    return bytes(zstd_module.compress(content))


def test_a_place_prints_with_its_line() -> None:
    assert str(Place("a.txt")) == "a.txt"
    assert str(Place("a.txt", 3)) == "a.txt:3"


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress), (".zst", zstd)]
)
def test_compressed_files_open_as_what_they_hold(tmp_path: Path, suffix: str, pack: "type[bytes]") -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(pack(b"one\ntwo\n"))
    with open_bytes(path) as stream:
        assert stream.read() == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress), (".zst", zstd)]
)
def test_damaged_compression_names_the_file(tmp_path: Path, suffix: str, pack: "type[bytes]") -> None:
    whole = pack(bytes(range(256)) * 100)
    for damaged in (whole[: len(whole) // 2], b"not compressed at all"):
        path = tmp_path / f"a.jsonl{suffix}"
        path.write_bytes(damaged)
        with pytest.raises(BadInput, match=r"a\.jsonl\..*(damaged|cannot be read)"), open_bytes(path) as stream:
            stream.read()


def test_a_file_of_zstd_is_what_it_was(tmp_path: Path) -> None:
    if zstd_module is None:
        pytest.skip("needs Zstandard")
    assert read_text(DATA / "handbook-copy.rst.zst") == read_text(DATA / "handbook.rst")


def test_missing_files_and_folders_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="gone does not exist"), open_bytes(tmp_path / "gone"):
        pass
    with pytest.raises(BadInput, match="cannot be read: Is a directory"), open_bytes(tmp_path):
        pass


def test_text_loses_its_byte_order_mark_and_foreign_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert read_text(path) == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"abc\0def", "is binary: NUL byte at offset 3"),
        (b"caf\xe9 noir", "is not UTF-8: byte 0xe9 at offset 3"),
        ("hi".encode("utf-16-le"), "is binary: NUL byte at offset 1"),
        (b"cut \xe2\x82", "is not UTF-8: byte 0xe2 at offset 4"),
    ],
)
def test_a_file_that_is_not_utf8_names_the_byte(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(raw)
    with pytest.raises(BadInput, match=message):
        read_text(path)


def test_lines_can_be_read_on_after_one_that_is_not_utf8() -> None:
    lines = TextLines(io.BytesIO(b"\xef\xbb\xbfone\ncaf\xe9\nthree"), "f")
    assert next(lines) == "one\n"
    with pytest.raises(BadInput, match="f:2 is not UTF-8: byte 0xe9 at offset 10"):
        next(lines)
    assert (next(lines), lines.number) == ("three", 3)


@pytest.mark.parametrize(
    "raw", [b"id,text\n" + b"x" * 21 + b"\n2,a\n", b"x" * 21, "\ufeffa\nwords words\n".encode("utf-16-le")]
)
def test_a_line_above_the_limit_ends_the_file_before_it_fills_the_memory(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "LIMITS", ParsingLimits(text_bytes=20))
    with pytest.raises(BadInput, match=r"^f has a record or a line of more than 0 MiB; split it, or leave it out$"):
        list(TextLines(io.BytesIO(raw), "f"))


def test_a_nul_byte_ends_the_lines() -> None:
    lines = TextLines(io.BytesIO(b"one\nt\0o\nthree\n"), "f")
    next(lines)
    with pytest.raises(BadInput, match="f:2 is binary: NUL byte at offset 5"):
        next(lines)
    assert list(lines) == []

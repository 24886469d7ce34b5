"""The child process: what hostile, damaged and huge files do to it, and to the files after them."""

import os
import random
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.read.isolated.parser_process import ParserProcess
from trilens.read.limits import LIMITS, MIB, ParsingLimits
from trilens.read.readers import read
from trilens.read.skipped import Skipped

from .conftest import Documents, Repack

for package in ("docx", "openpyxl", "pptx", "pypdfium2", "pyarrow", "striprtf"):
    pytest.importorskip(package)

LAUGHS = "".join(f'<!ENTITY {name} "{f"&{previous};" * 10}">' for previous, name in zip("abcdefgh", "bcdefghi", strict=True))
DOCTYPE = f'<!DOCTYPE laughs [<!ENTITY a "laugh laugh laugh ">{LAUGHS}]>'.encode()
WITH_AN_END = (".pdf", ".docx", ".pptx", ".xlsx", ".xlsm", ".epub", ".rtf", ".parquet", ".arrow", ".feather")
ENTITIES = {
    "handbook.docx": ("word/document.xml", b"Pump handbook"),
    "handbook.pptx": ("ppt/slides/slide1.xml", b"Pump handbook"),
    "handbook.epub": ("EPUB/content.opf", b"Pump handbook"),
    "parts.xlsx": ("xl/sharedStrings.xml", b"bearing"),
}
ROW = b'<row><c t="inlineStr"><is><t>abc</t></is></c></row>'


def parse(data: Path, name: str, parser: ParserProcess, path: Path | None = None) -> list[object]:
    return list(parser.parse(name.rpartition(".")[2], path or data / name, name))


def children() -> Iterator[int]:
    """The child processes of this process that have not ended."""
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                yield int(child)


@pytest.mark.parametrize("name", ENTITIES)
def test_entities_do_not_expand(documents: Documents, repack: Repack, data: Path, name: str) -> None:
    member, text = ENTITIES[name]
    with zipfile.ZipFile(data / name) as archive:
        root = archive.read(member)
    start = root.index(b"?>") + 2
    path = repack(name, member, root, root[:start] + DOCTYPE + root[start:].replace(text, b"&i;", 1))
    try:
        found = documents(path)
    except BadInput as error:
        assert "is damaged or of another format" in str(error)
    else:
        assert sum(str(document).count("laugh ") for document in found) < 1000


def test_an_archive_that_unpacks_to_more_than_the_limit_is_not_unpacked(data: Path) -> None:
    with ParserProcess(replace(LIMITS, unpacked_bytes=5000)) as parser:
        for name in ("handbook.docx", "handbook.epub", "handbook.pptx"):
            with pytest.raises(BadInput, match=rf"^{name} unpacks to more than 0 MiB; split it"):
                parse(data, name, parser)


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_is_read(data: Path, repack: Repack) -> None:
    bomb = repack("parts.xlsx", "xl/worksheets/sheet1.xml", b"</sheetData>", ROW * 500_000 + b"</sheetData>")
    with ParserProcess(ParsingLimits(seconds=3)) as parser:
        with pytest.raises(BadInput, match=r"^parts.xlsx takes more than 3 s to parse; repair or convert"):
            parse(data, "parts.xlsx", parser, bomb)
        assert len(parse(data, "patches.mbox", parser)) == 2


def test_a_file_that_needs_too_much_memory_is_given_up_and_the_next_one_is_read(data: Path, repack: Repack) -> None:
    bomb = repack("handbook.epub", "EPUB/text/ch001.xhtml", b"</body>", b"<p>abc</p>" * 8_000_000 + b"</body>")
    with ParserProcess(replace(LIMITS, memory_bytes=256 * MIB)) as parser:
        with pytest.raises(BadInput, match=r"^handbook.epub .*256 MiB"):
            parse(data, "handbook.epub", parser, bomb)
        assert len(parse(data, "handbook.epub", parser)) == 3


def test_a_text_above_the_limit_is_an_error(data: Path) -> None:
    with ParserProcess(replace(LIMITS, text_bytes=50)) as parser, pytest.raises(BadInput, match="more than 0 MiB of text"):
        parse(data, "handbook.pdf", parser)


def test_a_parser_that_is_killed_is_replaced(data: Path) -> None:
    before = set(children())
    with ParserProcess() as parser:
        pages = parser.parse("pdf", data / "handbook.pdf", "handbook.pdf")
        next(pages)
        (child,) = set(children()) - before
        pages.close()  # nobody wants the rest: what the process still writes must not be read as the next file
        assert child not in set(children())
        assert len(parse(data, "handbook.pdf", parser)) == 2
        (child,) = set(children()) - before
        os.kill(child, 9)
        while child in set(children()):
            pass
        assert len(parse(data, "handbook.pdf", parser)) == 2
    assert set(children()) == before


@pytest.mark.parametrize("share", [0, 0.5])
def test_empty_and_truncated_files_are_errors(documents: Documents, data: Path, tmp_path: Path, share: float) -> None:
    for source in sorted(data.iterdir()):
        if source.suffix not in WITH_AN_END or (source.suffix == ".rtf" and share):
            continue  # the first half of a text is a text
        whole = source.read_bytes()
        path = tmp_path / source.name
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(BadInput, match=f"^{source.name} is (empty|damaged|encrypted)") as caught:
            documents(path)
        assert "\n" not in str(caught.value)


def test_files_with_wrong_bytes_are_documents_or_errors_in_one_line(documents: Documents, data: Path, tmp_path: Path) -> None:
    damage = random.Random(1)
    for source in sorted(data.iterdir()):
        whole = bytearray(source.read_bytes())
        for _ in range(20):
            whole[damage.randrange(len(whole))] = damage.randrange(256)
        path = tmp_path / source.name
        path.write_bytes(whole)
        try:
            assert documents(path)
        except BadInput as error:
            assert source.name in str(error) and "\n" not in str(error)


def test_a_missing_package_names_the_extra_and_other_formats_are_read(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pypdfium2.py").write_text("raise ModuleNotFoundError(name='pypdfium2')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    skipped: list[Skipped] = []
    sources = [data / "handbook.pdf", data / "handbook.docx"]
    assert [document.doc_id for document in read(sources, on_skip=skipped.append)] == ["handbook.docx"]
    assert [str(skip) for skip in skipped] == [
        f"{data}/handbook.pdf needs packages that are not installed (pypdfium2): run `pip install 'trilens[formats]'`"
    ]


def test_modules_of_the_current_folder_are_not_imported(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("json", "docx", "pypdfium2"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    assert len(list(read([data / "handbook.pdf", data / "libreoffice.docx"]))) == 3
    assert not (tmp_path / "imported").exists()
    assert capfd.readouterr() == ("", "")

"""The table of readers by suffix: the built-in formats and those of installed packages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePath

from trilens.errors import BadInput
from trilens.read.column_types import read_typed_table
from trilens.read.formats import InputFile, PageContent, Reader, page_reader, parts_reader, record_reader
from trilens.read.html import read_html
from trilens.read.isolated.readers import isolated_page, isolated_parts, isolated_records
from trilens.read.jsonlines import read_json, read_jsonl
from trilens.read.limits import MIB
from trilens.read.markdown import read_markdown
from trilens.read.notebook import read_notebook
from trilens.read.python_code import read_python
from trilens.read.restructured_text import read_restructured_text
from trilens.read.source_code import LANGUAGES, read_source_code
from trilens.read.tables import read_table
from trilens.text.files import COMPRESSIONS, without_compression

ENTRY_POINTS = "trilens.readers"
NAMES_LIKE_TEXT = "log adoc asciidoc bib cfg conf diff ini org patch properties tex text toml yaml yml"


def _table(suffix: str, description: str, delimiter: str) -> Reader:
    """A reader of tables: the metadata of documents are typed, raw records are text."""
    typed = record_reader([suffix], description, lambda file: read_typed_table(file.stream, file.where, delimiter, file.fields))
    return replace(typed, records=lambda file: read_table(file.stream, file.where, delimiter, file.fields))


def _markdown(file: InputFile) -> PageContent:
    """A page of Markdown. Its parser takes a minute for a mebibyte of brackets, so larger files are parsed within limits."""
    text = file.text()
    return PageContent(*read_markdown(text)) if len(text) <= MIB else isolated_page("markdown", text, file)


JSONL = record_reader([".jsonl", ".ndjson"], "JSON Lines", lambda file: read_jsonl(file.stream, file.where))
JSON = record_reader([".json"], "JSON", lambda file: read_json(file.stream, file.where))
CSV = _table(".csv", "CSV", ",")
TSV = _table(".tsv", "TSV", "\t")
TEXT = page_reader([".txt"], "plain text", lambda file: PageContent("", file.text()), compressible=True)
MARKDOWN = page_reader([".md", ".markdown"], "Markdown", _markdown, compressible=True)
HTML = page_reader([".html", ".htm", ".xhtml"], "HTML", lambda file: PageContent(*read_html(file.text())), compressible=True)
RST = page_reader(
    [".rst"], "reStructuredText", lambda file: PageContent(*read_restructured_text(file.text())), compressible=True
)
NOTEBOOK = page_reader(
    [".ipynb"], "Jupyter notebooks", lambda file: PageContent(*read_notebook(file.text(), file.where)), compressible=True
)
LIKE_TEXT = page_reader(
    [f".{name}" for name in NAMES_LIKE_TEXT.split()],
    "logs and settings",
    lambda file: PageContent("", file.text()),
    compressible=True,
)
PYTHON = parts_reader([".py", ".pyi"], "Python", read_python, compressible=True)
CODE = parts_reader(list(LANGUAGES), "source code", read_source_code, compressible=True)
PDF = isolated_parts([".pdf"], "PDF", "pdf")
DOCX = isolated_parts([".docx"], "DOCX", "docx")
PPTX = isolated_parts([".pptx"], "PPTX", "pptx")
XLSX = isolated_parts([".xlsx", ".xlsm"], "XLSX", "xlsx")
EPUB = isolated_parts([".epub"], "EPUB", "epub")
RTF = isolated_parts([".rtf"], "RTF", "rtf", compressible=True)
MAIL = isolated_parts([".eml"], "e-mail", "mail", compressible=True)
MBOX = isolated_parts([".mbox"], "mailboxes", "mbox", compressible=True)
ARROW = isolated_records([".parquet", ".arrow", ".feather"], "Parquet and Arrow", "arrow")

BUILT_IN = (
    *(JSONL, JSON, CSV, TSV, TEXT, MARKDOWN, HTML, RST, NOTEBOOK, LIKE_TEXT, PYTHON, CODE),
    *(PDF, DOCX, PPTX, XLSX, EPUB, RTF, MAIL, MBOX, ARROW),
)


@dataclass(frozen=True, slots=True)
class ReaderTable:
    """Readers by suffix, and one message for each entry point that could not be used."""

    by_suffix: Mapping[str, Reader]
    problems: tuple[str, ...]


@cache
def reader_table() -> ReaderTable:
    """All readers. Entry points are loaded on the first call."""
    by_suffix = {suffix: reader for reader in BUILT_IN for suffix in reader.suffixes}
    providers = dict.fromkeys(by_suffix, "trilens itself")
    problems = []
    for entry_point in sorted(entry_points(group=ENTRY_POINTS), key=_entry_point_name):
        name = _entry_point_name(entry_point)
        try:
            reader = _load(entry_point)
        except BadInput as error:
            problems.append(f"{name} {error}: repair the package or uninstall it")
            continue
        taken = next((suffix for suffix in reader.suffixes if suffix in by_suffix), None)
        if taken is not None:
            problems.append(
                f"{name} reads {taken}, which {providers[taken]} already reads; expected another suffix: "
                "repair the package or uninstall it"
            )
            continue
        by_suffix |= dict.fromkeys(reader.suffixes, reader)
        providers |= dict.fromkeys(reader.suffixes, name)
    return ReaderTable(by_suffix, tuple(problems))


def reader_for(name: str) -> Reader | None:
    """The reader of a file name such as "a.JSONL.gz"; None if the suffix is unknown."""
    by_suffix = reader_table().by_suffix
    plain = without_compression(name)
    reader = by_suffix.get(PurePath(plain.lower()).suffix)
    return reader if reader is not None and (plain == name or reader.compressible) else None


def readable_suffixes() -> str:
    """The first suffix of each format, for a message."""
    readers = {id(reader): reader for reader in reader_table().by_suffix.values()}
    first = ", ".join(reader.suffixes[0] for reader in readers.values())
    return f"{first} or another suffix of these formats (text also with {', '.join(COMPRESSIONS)})"


def record_suffixes() -> str:
    """The suffixes of record formats, for a message."""
    suffixes = [suffix for suffix, reader in reader_table().by_suffix.items() if reader.records is not None]
    return f"{', '.join(suffixes)} (also {', '.join(COMPRESSIONS)})"


def built_in_formats() -> str:
    """The names of the built-in formats, for help texts."""
    return ", ".join(reader.description for reader in BUILT_IN)


def _entry_point_name(entry_point: EntryPoint) -> str:
    package = entry_point.dist.name if entry_point.dist is not None else "an unknown package"
    return f"the entry point {entry_point.name!r} of {package} in the group {ENTRY_POINTS} ({entry_point.value})"


def _load(entry_point: EntryPoint) -> Reader:
    try:
        reader = entry_point.load()
    except Exception as error:  # importing another package's module can raise anything
        reason = " ".join(str(error).split())
        raise BadInput(f"cannot be imported ({type(error).__name__}: {reason})") from error
    if not isinstance(reader, Reader):
        raise BadInput(f"is a {type(reader).__name__}; expected a trilens.read.formats.Reader")
    return reader

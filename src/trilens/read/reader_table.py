"""The table of readers by suffix: the built-in formats and those of installed packages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import PurePath

from trilens.errors import BadInput
from trilens.read.column_types import read_typed_table
from trilens.read.formats import PageContent, Reader, page_reader, record_reader
from trilens.read.html import read_html
from trilens.read.jsonlines import read_json, read_jsonl
from trilens.read.markdown import read_markdown
from trilens.read.tables import read_table
from trilens.text.files import COMPRESSIONS, without_compression

ENTRY_POINTS = "trilens.readers"


def _table(suffix: str, description: str, delimiter: str) -> Reader:
    """A reader of tables: the metadata of documents are typed, raw records are text."""
    typed = record_reader([suffix], description, lambda file: read_typed_table(file.stream, file.where, delimiter, file.fields))
    return replace(typed, records=lambda file: read_table(file.stream, file.where, delimiter, file.fields))


JSONL = record_reader([".jsonl", ".ndjson"], "JSON Lines", lambda file: read_jsonl(file.stream, file.where))
JSON = record_reader([".json"], "JSON", lambda file: read_json(file.stream, file.where))
CSV = _table(".csv", "CSV", ",")
TSV = _table(".tsv", "TSV", "\t")
TEXT = page_reader([".txt"], "plain text", lambda file: PageContent("", file.text()))
MARKDOWN = page_reader([".md", ".markdown"], "Markdown", lambda file: PageContent(*read_markdown(file.text())))
HTML = page_reader([".html", ".htm"], "HTML", lambda file: PageContent(*read_html(file.text())))
BUILT_IN = (JSONL, JSON, CSV, TSV, TEXT, MARKDOWN, HTML)


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
    """All suffixes, for a message."""
    by_suffix = reader_table().by_suffix
    compressed = ", ".join(COMPRESSIONS)
    return f"{', '.join(by_suffix)} (records also with {compressed})"


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

"""Large Markdown is parsed within limits."""

import io

import pytest

from trilens.errors import BadInput
from trilens.read.formats import InputFile
from trilens.read.isolated.parser_process import ParserProcess
from trilens.read.limits import MIB, ParsingLimits
from trilens.read.reader_table import MARKDOWN
from trilens.text.document import Document


def read(source: str, limits: ParsingLimits) -> list[Document | BadInput]:
    with ParserProcess(limits) as parser:
        return list(MARKDOWN.read(InputFile(io.BytesIO(source.encode()), "/path/a.md", "a.md", parser=parser)))


def test_a_large_file_is_read_like_a_small_one() -> None:
    text = "Some *words* naïvely\n" * (MIB // 20)
    assert read(f"---\nyear: 2024\n---\n# Title\n\n{text}", ParsingLimits()) == [
        Document("a.md", "Title\n\n" + text.replace("*", "").strip(), "Title", {"year": 2024, "path": "/path/a.md"})
    ]


def test_a_large_file_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(BadInput, match=r"^/path/a.md takes more than 2 s to parse; repair or convert"):
        read("[" * (MIB + 1), ParsingLimits(seconds=1))

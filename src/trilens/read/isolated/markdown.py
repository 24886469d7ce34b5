"""Large Markdown: whatever it holds, it costs no more than the limits on time and memory."""

from collections.abc import Iterator

from trilens.read.formats import PageContent
from trilens.read.isolated.local_file import LocalFile
from trilens.read.markdown import read_markdown


def parse(file: LocalFile) -> Iterator[PageContent]:
    """Yield the whole document."""
    yield PageContent(*read_markdown(file.path.read_text("utf-8")))

"""A reader of subtitles (.srt): what is said is the text; the metadata has the time of the last subtitle."""

import re

from trilens.errors import BadInput
from trilens.read.formats import InputFile, PageContent, page_reader

CUE = re.compile(r"(?:\A|\n)\d+\n([\d:,]+) --> ([\d:,]+).*\n((?:.+\n?)*)")


def read_subtitles(file: InputFile) -> PageContent:
    """The content of one file."""
    cues = CUE.findall(file.text())
    if not cues:
        raise BadInput(f"{file.where} has no subtitles; expected numbered ones with their times")
    return PageContent("", "".join(spoken for _, _, spoken in cues), {"until": cues[-1][1]})


SUBTITLES = page_reader([".srt"], "subtitles", read_subtitles)

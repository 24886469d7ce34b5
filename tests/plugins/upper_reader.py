"""A plug-in reader of a binary format: a length byte and a text, upside down in case."""

from trilens.read.formats import InputFile, PageContent, page_reader


def read_upper(file: InputFile) -> PageContent:
    content = file.stream.read()
    return PageContent("", content[1 : 1 + content[0]].decode("ascii").swapcase(), {"bytes": len(content)})


UPPER = page_reader([".upper"], "swapped case", read_upper)

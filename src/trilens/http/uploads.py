"""Documents of an uploaded file: its suffix selects the reader, as for files on the disk."""

from io import BytesIO

from trilens.errors import BadInput
from trilens.http.failures import Refused
from trilens.read.formats import InputFile
from trilens.read.reader_table import reader_for, reader_table
from trilens.text.document import Document
from trilens.text.files import without_compression


def read_upload(name: str, content: bytes, most: int) -> list[Document]:
    """The documents of a file; errors are those of the reader. More than `most` documents are refused."""
    if without_compression(name) != name:  # a small file could become any number of bytes
        raise BadInput(f"{name} is compressed; expected a plain file: decompress it")
    reader = reader_for(name)
    if reader is None:
        raise BadInput(
            f"{name} has no known suffix; expected {', '.join(reader_table().by_suffix)}: rename or convert the file"
        )
    documents: list[Document] = []
    for document in reader.read(InputFile(BytesIO(content), name, name)):
        if isinstance(document, BadInput):
            raise document
        if len(documents) == most:
            raise Refused(413, f"{name} holds more than {most:,} documents; split it, or index it with `trilens index`")
        documents.append(document)
    return documents

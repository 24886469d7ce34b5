"""Adding documents whose keys are given, or whose passages are encoded already."""

from collections.abc import Iterable, Mapping, Sequence

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.store.lens_set import LensSet
from trilens.store.passages import PassageSplitter
from trilens.store.writer import Writer
from trilens.text.document import Document
from trilens.text.passages import passage_text


def encode_documents(documents: Sequence[Document], lenses: LensSet, split: PassageSplitter) -> dict[str, Encoded]:
    """The passages of documents as each lens indexes them, in order."""
    texts = [passage_text(document, *span) for document in documents for span in split(document)]
    return {name: encoded for names, encoded in lenses.encode_docs(lenses.names, texts) for name in names}


def add_documents(
    writer: Writer, documents: Iterable[Document], keys: Iterable[int] | None, encoded: Mapping[str, Encoded] | None
) -> None:
    """Add documents with unused ids."""
    if keys is None and encoded is None:
        for document in documents:
            writer.add(document)
        return
    every = list(documents)
    given: list[int | None] = [None] * len(every) if keys is None else list(keys)
    if len(given) != len(every):
        raise BadInput(f"there are {len(given)} keys for {len(every)} documents; expected one for each")
    if encoded is not None:
        writer.add_encoded(every, given, encoded)
        return
    for document, key in zip(every, given, strict=True):
        writer.add(document, key)

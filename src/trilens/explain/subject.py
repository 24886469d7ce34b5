"""What is to be explained: one query, one document, one lens, and the passage of the document that the lens likes best."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.explain.explanation import Passage
from trilens.search.filling import fill_scores
from trilens.store.lenses import Lenses
from trilens.store.snapshot import Snapshot
from trilens.text.passages import passage_text


@dataclass(frozen=True, eq=False)
class Subject:
    """`score` is that of the row, None where the lens cannot score the document. `encoded` holds the one query."""

    snapshot: Snapshot
    lenses: Lenses
    lens: str
    query: str
    doc_id: str
    encoded: Encoded
    params: Any | None
    row: int
    score: float | None
    passage: Passage


def key_of(snapshot: Snapshot, doc_id: str) -> int:
    """Our number of a document that has to be there."""
    key = snapshot.key(doc_id)
    if key is None:
        raise BadInput(f"there is no document {doc_id!r} in the collection; expected the id of one")
    return key


def subject_of(
    snapshot: Snapshot,
    lenses: Lenses,
    lens: str,
    query: str,
    doc_id: str,
    encoded: Encoded,
    params: Any | None = None,
    where: Mapping[str, Any] | None = None,
) -> Subject:
    """The best passage of a document by a lens; the first one where the lens cannot score any."""
    key = key_of(snapshot, doc_id)
    found = fill_scores(snapshot, lens, encoded, [[key]], params, where)[0].get(key)
    row = found.row if found else first_row(snapshot, key)
    score = found.score if found else None
    return Subject(snapshot, lenses, lens, query, doc_id, encoded, params, row, score, passage_at(snapshot, row))


def first_row(snapshot: Snapshot, key: int) -> int:
    """That of the first passage of a document."""
    return int(snapshot.rows_of(np.array([key]))[0].min())


def passage_at(snapshot: Snapshot, row: int) -> Passage:
    """A row as the lenses see it."""
    rows = np.array([row])
    places = snapshot.places(rows)
    key, start, end = (int(column[0]) for column in (places.keys, places.starts, places.ends))
    text = passage_text(snapshot.documents([key])[key], start, end)
    return Passage(text, len(text) - (end - start), start, end)

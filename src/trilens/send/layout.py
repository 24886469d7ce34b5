"""`Layout`: the vector fields of a target, one for each lens that is sent."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.represent import Dense, Multi, Representation, Sparse
from trilens.store.snapshot import Snapshot

KIND_NAMES = {Dense: "dense vectors", Sparse: "sparse vectors", Multi: "token vectors"}


@dataclass(frozen=True, slots=True)
class VectorField:
    """The vectors of one lens: `Dense`, `Sparse` or `Multi` of this many dimensions."""

    lens: str
    kind: type[Representation]
    dim: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The vector fields, and whether dense and token vectors have 16 bits per dimension instead of 32."""

    fields: tuple[VectorField, ...]
    half: bool = False

    def of_kind(self, kind: type[Representation]) -> list[VectorField]:
        """The fields of one kind."""
        return [field for field in self.fields if field.kind is kind]


def layout_of(collection: Collection, lenses: Sequence[str] | None, half: bool = False) -> Layout:
    """The layout of these lenses; None takes all that have vectors."""
    snapshot = collection.snapshot
    for lens in lenses or ():
        if lens not in collection.lenses:
            raise BadInput(
                f"there is no lens {lens!r} in {collection.path}; expected some of {', '.join(collection.lenses)}, "
                "or index again with that lens"
            )
    if not snapshot.live_rows:
        raise BadInput(f"{collection.path} has no documents; nothing was sent: to empty the target, delete it in the engine")
    found = {lens: _field(snapshot, lens) for lens in lenses or collection.lenses}
    if lenses and (without := [lens for lens, field in found.items() if field is None]):
        raise BadInput(
            f"lens {without[0]} has no vectors; expected lenses with vectors, such as dense: texts are sent in any case, for "
            "the full-text search of the engine"
        )
    fields = tuple(field for field in found.values() if field is not None)
    if not fields:
        raise BadInput(
            f"no lens of {collection.path} has vectors: they are {', '.join(collection.lenses)}; expected dense, say"
        )
    return Layout(fields, half)


def _field(snapshot: Snapshot, lens: str) -> VectorField | None:
    """The field of a lens, by the vector of some row; None if the lens has no vectors."""
    vectors = snapshot.searcher(lens).vectors(np.zeros(1, np.int64))
    if vectors is None:
        return None
    if not vectors.dim:
        raise BadInput(f"lens {lens} has no vectors: no passage has a token; leave the lens out")
    return VectorField(lens, type(vectors), vectors.dim)

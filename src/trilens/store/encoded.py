"""Passages that were encoded elsewhere: on another machine, or in an earlier run."""

from collections.abc import Iterator, Mapping, Sized
from dataclasses import fields

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.store.lens_set import LensSet


def given_passes(given: Mapping[str, Encoded], lenses: LensSet, passages: int) -> Iterator[tuple[list[str], Encoded]]:
    """What was given, in the form of `LensSet.encode_docs`, after checking that all lenses have all passages."""
    if set(given) != set(lenses.names):
        raise BadInput(f"encoded has the lenses {', '.join(given) or 'none'}; expected {', '.join(lenses.names)}")
    for name in lenses.names:
        columns = (getattr(given[name], field.name) for field in fields(Encoded))
        if wrong := {len(rows) for rows in columns if isinstance(rows, Sized)} - {passages}:
            raise BadInput(
                f"encoded has {wrong.pop()} passages for {name}, but the documents have {passages}; expected what "
                "Collection.encode returns for them"
            )
        yield [name], given[name]

"""`LensSet`: the lenses of one collection, made from its configuration."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trilens.cancellation import require_wanted
from trilens.encode.cross_encoder import CrossEncoder
from trilens.encode.encoder import Encoded, Progress
from trilens.encode.model import HeadsEncoder, ModelEncoder, joint_passes
from trilens.errors import BadInput
from trilens.lenses.lens import Lens, LensSetup
from trilens.lenses.registry import lens_type, lens_types, stored_names
from trilens.store.config import CollectionConfig


class LensSet:
    """The lenses of one collection by name. Their model is loaded when a text is first encoded."""

    def __init__(self, config: CollectionConfig, threads: int | None = None, encoder: HeadsEncoder | None = None) -> None:
        self.model = ModelEncoder(config.model, config.heads, config.model_fingerprint, threads, encoder)
        self._config = config
        self._lenses = {name: self._make(name) for name in config.lenses}
        self._threads = threads
        self._cross_encoders: dict[str, CrossEncoder] = {}

    @property
    def names(self) -> list[str]:
        """In the order of the configuration."""
        return list(self._lenses)

    @property
    def sharing(self) -> list[str]:
        """The lenses that write shared parts."""
        return [name for name, lens in self._lenses.items() if lens.shares]

    def __getitem__(self, name: str) -> Lens:
        if name not in self._lenses:
            raise BadInput(
                f"there is no lens {name!r} in this collection; expected one of {', '.join(self.names)}, "
                "or index again with that lens"
            )
        return self._lenses[name]

    def folder(self, name: str) -> str:
        """The name of a lens on disk."""
        known = lens_types().get(name)
        return known.stored_as if known else name

    def of_folder(self, folder: str) -> str:
        """The lens with this name on disk."""
        return stored_names().get(folder, folder)

    def late(self, name: str) -> Lens | None:
        """A lens that the collection does not hold, to score texts at query time; None if its model heads are missing."""
        known = lens_types().get(name)
        if name in self._lenses or not known or not known.late or not set(known.heads) <= set(self._config.heads):
            return None
        return self._make(name)

    def cross_encoder(self, model: str) -> CrossEncoder:
        """A cross-encoder by name or folder, opened once."""
        if model not in self._cross_encoders:
            self._cross_encoders.setdefault(model, CrossEncoder.named(model, self._threads))
        return self._cross_encoders[model]

    def encode_queries(self, names: Sequence[str], texts: list[str], params: Mapping[str, Any]) -> dict[str, Encoded]:
        """The queries as each lens searches them with these params."""
        encoders = {name: self[name].query_encoder(params.get(name)) for name in names}
        encoded: dict[str, Encoded] = {}
        for users, encoder in joint_passes(encoders):
            require_wanted()
            encoded |= dict.fromkeys(users, encoder.encode_queries(texts))
        return encoded

    def encode_docs(
        self, names: Sequence[str], texts: list[str], progress: Progress | None = None
    ) -> Iterator[tuple[list[str], Encoded]]:
        """The texts by each encoder in turn, with the names of the lenses that use it."""
        passes = joint_passes({name: self[name].encoder for name in names})
        for number, (users, encoder) in enumerate(passes, start=1):
            # The model comes last and takes nearly all the time, so only it reports progress.
            yield users, encoder.encode_docs(texts, progress if number == len(passes) else None)

    def _make(self, name: str) -> Lens:
        known = lens_type(name)
        return known.make(LensSetup(self._config.of_lens(name), self.model, self._config.term_weighting))

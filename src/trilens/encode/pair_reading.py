"""Inputs of a cross-encoder: query and passage as one sequence of tokens with types, the passage truncated."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from trilens.encode.cross_folder import CrossConfig
from trilens.encode.tokens import Tokens
from trilens.kernels.array_types import Int64s

Pair = tuple[str, str]
"""A query and a passage."""


@dataclass(frozen=True, slots=True)
class PairInputs:
    """Token ids and token types of pairs, as the model receives them."""

    ids: list[list[int]]
    types: list[list[int]]

    def padded(self, batch: Int64s) -> dict[str, Int64s]:
        """The model inputs of a batch, padded to its longest pair."""
        shape = (len(batch), max(len(self.ids[pair]) for pair in batch))
        ids, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
        for row, pair in enumerate(batch):
            length = len(self.ids[pair])
            ids[row, :length], mask[row, :length], types[row, :length] = self.ids[pair], 1, self.types[pair]
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


class PairReading:
    """Turns pairs into model inputs. Texts that occur in several pairs are tokenised once."""

    def __init__(self, tokens: Tokens, max_tokens: int, max_query_tokens: int) -> None:
        self._tokens, self._form = tokens, tokens.pair
        self._around = len(self._form.opening) + len(self._form.middle) + len(self._form.closing)
        self._max_tokens, self._max_query_tokens = max_tokens, min(max_query_tokens, max_tokens - self._around - 1)

    @staticmethod
    def of(tokens: Tokens, config: CrossConfig) -> "PairReading":
        """The inputs that a description asks for."""
        return PairReading(tokens, config.max_tokens, config.max_query_tokens)

    def read(self, pairs: Sequence[Pair]) -> PairInputs:
        """Tokenise pairs: the query is cut to its maximum length, the passage to what remains."""
        queries = self._inner([query for query, _ in pairs], self._max_query_tokens)
        passages = self._inner([passage for _, passage in pairs], self._max_tokens - self._around)
        ids, types = [], []
        for query, passage in pairs:
            own = queries[query]
            parts = (
                self._form.opening,
                own,
                self._form.middle,
                passages[passage][: self._max_tokens - self._around - len(own)],
                self._form.closing,
            )
            ids.append([*chain.from_iterable(parts)])
            types.append([kind for part, kind in zip(parts, self._form.types, strict=True) for _ in part])
        return PairInputs(ids, types)

    def _inner(self, texts: Sequence[str], max_tokens: int) -> dict[str, list[int]]:
        """The token ids of each distinct text without special tokens, at most `max_tokens`."""
        distinct = list(dict.fromkeys(texts))
        opening, closing = len(self._tokens.opening), len(self._tokens.closing)
        rows, _ = self._tokens.encode(distinct, max_tokens + opening + closing)
        return {text: row[opening : len(row) - closing] for text, row in zip(distinct, rows, strict=True)}

"""`Alignment`: which document token each query token matched in late interaction, and how well."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from trilens.kernels.array_types import Float32s, Int64s, Mask
from trilens.lenses.parts import Matrix, Part, Span


@dataclass(frozen=True, eq=False)
class Alignment:
    """One query against one row. `similarities` is (query tokens, document tokens), from the vectors as they are indexed.

    `retrieved`, of the same shape, marks the tokens that the search scored: all of them, unless it imputes. A query token
    none of whose retrieved tokens reaches its `floor` counts with that floor (-inf where nothing is imputed). `weights` are
    the lengths of the query's vectors, which the similarities already contain.
    """

    query_tokens: list[str]
    doc_tokens: list[str]
    similarities: Float32s
    retrieved: Mask
    floors: Float32s
    weights: Float32s
    query_spans: list[Span | None] = field(default_factory=list)
    doc_spans: list[Span | None] = field(default_factory=list)

    @cached_property
    def winners(self) -> Int64s:
        """The document token that each query token matched; -1 where its similarity was imputed."""
        scored = np.where(self.retrieved, self.similarities, -np.inf)
        best = scored.argmax(axis=1)
        return np.where(scored[np.arange(len(best)), best] < self.floors, -1, best)

    @property
    def imputed(self) -> Mask:
        """Whether the similarity of each query token was imputed."""
        return self.winners < 0

    @cached_property
    def contributions(self) -> Float32s:
        """The summand of each query token."""
        best = self.similarities[np.arange(len(self.winners)), np.maximum(self.winners, 0)]
        return np.where(self.imputed, self.floors, best)

    @property
    def score(self) -> float:
        """The sum of the contributions."""
        return float(self.contributions.sum())

    def parts(self) -> list[Part]:
        """One part per query token, in order."""
        parts = []
        rows = zip(self.winners.tolist(), self.contributions.tolist(), self.weights.tolist(), strict=True)
        for number, (winner, score, weight) in enumerate(rows):
            span = None if winner < 0 else self.doc_spans[winner]
            parts.append(
                Part(
                    label=self.query_tokens[number],
                    score=score,
                    kind="imputed" if winner < 0 else "pair",
                    target=None if winner < 0 else self.doc_tokens[winner],
                    query_span=self.query_spans[number],
                    doc_spans=(span,) if span else (),
                    facts={"query_weight": weight, "similarity": score / weight if weight else 0.0},
                )
            )
        return parts

    def matrix(self) -> Matrix:
        """The similarities of all token pairs."""
        return Matrix(self.query_tokens, self.doc_tokens, self.similarities, self.query_spans, self.doc_spans)

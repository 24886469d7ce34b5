"""Resolved settings of one search over weighted terms, and their defaults."""

from typing import NamedTuple


class SparseSettings(NamedTuple):
    """`terms` of the query are read and `candidates` rows scored in full; `terms` is 0 for an exact search."""

    terms: int
    candidates: int

    @staticmethod
    def of(approximate: bool, terms: int | None, candidates: int | None, k: int, rows: int) -> "SparseSettings":
        """The settings of a search for the best k of `rows` rows; None is replaced by a default that grows with the rows.

        A pure function, so that no search affects the next.
        """
        if not approximate:
            return SparseSettings(0, 0)
        growth = max(1.0, rows / 50_000) ** 0.25
        terms = int(128 * growth) if terms is None else terms
        candidates = int(max(200, 8 * k) * growth) if candidates is None else candidates
        return SparseSettings(terms, max(k, candidates))

"""Statistics: what the scores of a passage depend on besides query and passage, so that parts of a collection score alike.

A searcher counts its own rows. Where it holds only a part of a collection, the statistics of all parts are joined and given to
each of them (`Snapshot.given`); then every score is the one that the whole collection would give.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from trilens.errors import BadInput
from trilens.kernels.array_types import Float64s, Int64s, UInt64s

SAMPLE_ROWS = 256


@dataclass(frozen=True, slots=True)
class LensStatistics:
    """What one lens counts in the live rows.

    words        their length in words (bm25)
    frequencies  the number of rows with a term, for the terms of the queries at least
    """

    words: int = 0
    frequencies: Mapping[Hashable, int] = field(default_factory=dict)

    def __add__(self, other: "LensStatistics") -> "LensStatistics":
        frequencies = Counter(self.frequencies)
        frequencies.update(other.frequencies)
        return LensStatistics(self.words + other.words, dict(frequencies))

    def of(self, terms: Sequence[Hashable]) -> Int64s:
        """The frequencies of some terms."""
        try:
            return np.array([self.frequencies[term] for term in terms], np.int64)
        except KeyError as error:
            raise BadInput(f"the given statistics do not count the term {error}; expected all terms of the queries") from error


@dataclass(frozen=True, eq=False, slots=True)
class Statistics:
    """The statistics of a collection, or of a part of it, for a batch of queries.

    rows    number of live rows
    sample  the smallest sampling numbers of live rows, ascending: they say which rows are the random sample
    lenses  by lens, what it counts
    """

    rows: int
    sample: UInt64s
    lenses: Mapping[str, LensStatistics]

    @staticmethod
    def join(parts: Sequence["Statistics"]) -> "Statistics":
        """The statistics of the collection that consists of these parts."""
        sample = np.sort(np.concatenate([np.empty(0, np.uint64), *(part.sample for part in parts)]))[:SAMPLE_ROWS]
        names = dict.fromkeys(name for part in parts for name in part.lenses)
        lenses = {
            name: reduce(LensStatistics.__add__, (part.lenses[name] for part in parts if name in part.lenses)) for name in names
        }
        return Statistics(sum(part.rows for part in parts), sample, lenses)


@dataclass(eq=False, slots=True)
class Sample:
    """Random live rows, ascending, and for one lens the sum of the lengths of their vectors, once it is known."""

    rows: Int64s
    length: float | None = None

    def sum_lengths(self, length: Callable[[int], float]) -> float:
        """The sum of the lengths of the rows; computed once."""
        if self.length is None:
            self.length = float(sum(map(length, self.rows.tolist())))
        return self.length


@dataclass(frozen=True, eq=False, slots=True)
class ScaleSums:
    """Sums over random rows, from which a `ScoreScale` is made; those of several parts of a collection add up.

    zero   by query, the sum of the scores of the rows that have one
    known  by query, the number of these rows
    best   by query, the sum of the best scores that passages like the rows can have
    rows   number of rows
    least  the share of the way from zero to best below which a match is weak
    """

    zero: Float64s
    known: Int64s
    best: Float64s
    rows: int
    least: float

    def __add__(self, other: "ScaleSums") -> "ScaleSums":
        sums = (self.zero + other.zero, self.known + other.known, self.best + other.best, self.rows + other.rows)
        return ScaleSums(*sums, self.least)


def sampling_numbers(keys: Int64s, starts: Int64s) -> UInt64s:
    """A random number for each row by document key and start of the passage, wherever it is stored (splitmix64)."""
    mixed: UInt64s = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + starts.astype(np.uint64)
    mixed += np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))

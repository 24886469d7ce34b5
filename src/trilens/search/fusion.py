"""One ranking out of several."""

from collections.abc import Mapping, Sequence

RRF_K = 60


def reciprocal_rank_fusion(rankings: Mapping[str, Sequence[int]], k: float = RRF_K) -> list[tuple[int, float]]:
    """Σ over rankings of 1 / (k + rank), best first, ties by the smaller key (Cormack et al. 2009).

    It needs no comparable scores: a document missing from a ranking just gets nothing from it.
    """
    scores: dict[int, float] = {}
    for ranking in rankings.values():
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))

"""A comparison in words: which run is best, by how much, and whether that is more than luck."""

from collections.abc import Sequence

from trilens.evaluate.comparison import Comparison, Pair
from trilens.evaluate.significance import ROUNDS, TIE


def headline(comparison: Comparison) -> str:
    """Who leads, in one short line."""
    best, *others = comparison.ranking
    if not others:
        return f"{best}: {comparison.measures[0]} {comparison.mean(best):.3f}"
    pair = comparison.pair(best, others[0])
    if pair.difference <= TIE:
        return f"{best} and {others[0]} are level"
    return f"{best} wins" if pair.significant else f"{best} leads, but not by enough to be sure"


def verdict(comparison: Comparison) -> list[str]:
    """Sentences: the lead, what it is worth, and how the best does against the rest."""
    best, *others = comparison.ranking
    measure, queries = comparison.measures[0], f"{len(comparison.queries):,} queries"
    if not others:
        return [f"{best} reaches {measure} {comparison.mean(best):.3f} over {queries}; nothing else was measured with it."]
    second = others[0]
    pair = comparison.pair(best, second)
    sentences = [_lead(comparison, pair, queries), _worth(pair)]
    if len(others) > 1:
        sentences.append(_rest(best, [comparison.pair(best, other) for other in others[1:]]))
    return sentences


def shown_p(p: float) -> str:
    """With three figures; what is too small for them is told as less."""
    return "p < 0.0001" if p < 0.0001 else "p = 1" if p > 0.9995 else f"p = {p:.2g}" if p < 0.01 else f"p = {p:.3f}"


def method(comparison: Comparison) -> str:
    """How the p-values and intervals were made."""
    count = len(comparison.pairs)
    corrected = f"corrected by Holm's method for all {count} comparisons" if count > 1 else "of one comparison"
    return (
        f"p: paired randomisation test, two-sided, all sign patterns counted where few queries differ and {ROUNDS:,} drawn "
        f"with a fixed seed otherwise, {corrected}; below 0.05 is called significant. Intervals: 95 %, bootstrap over queries."
    )


def notes(comparison: Comparison) -> list[str]:
    """What a reader has to know of queries that were not in both the runs and the judgements."""
    told = []
    if nothing := comparison.nothing_relevant:
        told.append(
            f"{_named(nothing, 'query', 'queries')} without a relevant document among the judgements: zero for every run"
        )
    for name in comparison.names:
        if absent := comparison.absent[name]:
            told.append(f"{name} lacks {_named(absent, 'judged query', 'judged queries')}; each counts as zero")
        if unjudged := comparison.unjudged[name]:
            told.append(f"{name} has {_named(unjudged, 'query', 'queries')} without judgements; they cannot count")
    return told


def _lead(comparison: Comparison, pair: Pair, queries: str) -> str:
    measure, (first, second) = comparison.measures[0], (comparison.mean(pair.first), comparison.mean(pair.second))
    if pair.difference <= TIE:
        return f"{pair.first} and {pair.second} both reach {measure} {first:.3f} over {queries}."
    share = f" ({100 * pair.difference / second:.1f} %)" if second > TIE else ""
    lead = f"{pair.difference:.3f}{share} more than the next, {pair.second}"
    return f"{pair.first} reaches {measure} {first:.3f} over {queries}, {lead}."


def _worth(pair: Pair) -> str:
    counts = f"{pair.first} is better on {pair.wins:,}, equal on {pair.ties:,}, worse on {pair.losses:,} of them"
    if pair.significant:
        return f"That lead is significant ({shown_p(pair.p_holm)}): {counts}."
    if pair.p_holm > 0.9995 and not pair.wins and not pair.losses:
        return "They answer every query equally well."
    return f"That is not significant ({shown_p(pair.p_holm)}): {counts}. It may be luck; more judged queries would tell."


def _rest(best: str, pairs: Sequence[Pair]) -> str:
    beaten = [pair.second for pair in pairs if pair.significant]
    close = [pair.second for pair in pairs if not pair.significant]
    told = []
    if beaten:
        told.append(f"significantly better than {_listed(beaten)}")
    if close:
        told.append(f"not significantly better than {_listed(close)}")
    return f"Of the others, {best} is {', and '.join(told)}."


def _named(ids: Sequence[str], one: str, several: str) -> str:
    some = ", ".join(ids[:5]) + (" …" if len(ids) > 5 else "")
    return f"{len(ids):,} {one if len(ids) == 1 else several} ({some})"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

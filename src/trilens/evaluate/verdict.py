"""A comparison in words: the best run, its lead, and whether the lead is significant."""

from collections.abc import Sequence

from trilens.evaluate.comparison import Comparison, RunPair
from trilens.evaluate.significance import ROUNDS, TIE


def headline(comparison: Comparison) -> str:
    """One line naming the best run."""
    best, *others = comparison.ranking
    if not others:
        return f"{best}: {comparison.measures[0]} {comparison.mean(best):.3f}"
    pair = comparison.pair(best, others[0])
    if pair.difference <= TIE:
        return f"{best} and {others[0]} tie"
    return f"{best} wins" if pair.significant else f"{best} leads, but not significantly"


def verdict(comparison: Comparison) -> list[str]:
    """Sentences on the lead of the best run, its significance, and the remaining runs."""
    best, *others = comparison.ranking
    measure, queries = comparison.measures[0], f"{len(comparison.queries):,} queries"
    if not others:
        return [f"{best} reaches {measure} {comparison.mean(best):.3f} over {queries}; no other run was compared."]
    pair = comparison.pair(best, others[0])
    sentences = [_lead(comparison, pair, queries), _significance(pair)]
    if len(others) > 1:
        sentences.append(_others(best, [comparison.pair(best, other) for other in others[1:]]))
    return sentences


def format_p(p: float) -> str:
    """Format a p-value with two or three digits; very small values as an upper bound."""
    return "p < 0.0001" if p < 0.0001 else "p = 1" if p > 0.9995 else f"p = {p:.2g}" if p < 0.01 else f"p = {p:.3f}"


def method(comparison: Comparison) -> str:
    """How the p-values and confidence intervals were computed."""
    count = len(comparison.pairs)
    corrected = f"with Holm correction over all {count} comparisons" if count > 1 else "for a single comparison"
    return (
        f"p-values: two-sided paired randomisation test (exact if few queries differ, otherwise {ROUNDS:,} random sign "
        f"assignments with a fixed seed), {corrected}; differences with p < 0.05 are significant. "
        "Intervals: 95 % bootstrap confidence intervals over queries."
    )


def notes(comparison: Comparison) -> list[str]:
    """Remarks on queries without relevant documents, missing from a run, or without judgements."""
    remarks = []
    if nothing := comparison.nothing_relevant:
        remarks.append(f"{_counted(nothing, 'query', 'queries')} without a relevant document in the qrels: zero for every run")
    for name in comparison.names:
        if absent := comparison.absent[name]:
            remarks.append(f"{name} lacks {_counted(absent, 'judged query', 'judged queries')}; each counts as zero")
        if unjudged := comparison.unjudged[name]:
            remarks.append(f"{name} has {_counted(unjudged, 'query', 'queries')} without judgements; they are ignored")
    return remarks


def _lead(comparison: Comparison, pair: RunPair, queries: str) -> str:
    measure, (first, second) = comparison.measures[0], (comparison.mean(pair.first), comparison.mean(pair.second))
    if pair.difference <= TIE:
        return f"{pair.first} and {pair.second} both reach {measure} {first:.3f} over {queries}."
    share = f" ({100 * pair.difference / second:.1f} %)" if second > TIE else ""
    lead = f"{pair.difference:.3f}{share} more than the second-best run, {pair.second}"
    return f"{pair.first} reaches {measure} {first:.3f} over {queries}, {lead}."


def _significance(pair: RunPair) -> str:
    evidence = f"{format_p(pair.p_holm)}, wins/ties/losses {pair.wins:,}/{pair.ties:,}/{pair.losses:,}"
    if pair.significant:
        return f"The lead is significant ({evidence})."
    if pair.p_holm > 0.9995 and not pair.wins and not pair.losses:
        return "Both score equally on every query."
    return f"The difference is not significant ({evidence}) and may be due to chance."


def _others(best: str, pairs: Sequence[RunPair]) -> str:
    beaten = [pair.second for pair in pairs if pair.significant]
    close = [pair.second for pair in pairs if not pair.significant]
    clauses = []
    if beaten:
        clauses.append(f"significantly better than {_listed(beaten)}")
    if close:
        clauses.append(f"not significantly better than {_listed(close)}")
    return f"Of the remaining runs, {best} is {', and '.join(clauses)}."


def _counted(ids: Sequence[str], singular: str, plural: str) -> str:
    sample = ", ".join(ids[:5]) + (" …" if len(ids) > 5 else "")
    return f"{len(ids):,} {singular if len(ids) == 1 else plural} ({sample})"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

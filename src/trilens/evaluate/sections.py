"""HTML sections shared by comparison pages and evaluation reports."""

from collections.abc import Mapping, Sequence

from trilens.evaluate import charts
from trilens.evaluate.comparison import Comparison, RunPair
from trilens.evaluate.examples import QueryExample, Reason
from trilens.evaluate.verdict import format_p, headline, method, notes, verdict
from trilens.explain.explanation import Explanation
from trilens.explain.sheet import coloured_passage, lens_colour, safe
from trilens.lenses.registry import lens_types

MOST_SCATTERS = 9
MOST_GAINS = 8
STYLE = (
    charts.STYLE
    + """
.card{background:var(--surface);border:1px solid var(--line);border-radius:14px;padding:1rem 1.2rem;margin:1rem 0}
.card>:first-child{margin-top:0}.card>:last-child{margin-bottom:0}
.verdict h2{margin:.1rem 0 .4rem}.verdict p{margin:.35rem 0}.verdict{border-left:5px solid var(--soft)}
.verdict.sure{border-left-color:var(--good)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));gap:1rem;align-items:start}
.charts.small{grid-template-columns:repeat(auto-fill,minmax(min(100%,18rem),1fr))}
figure{margin:0}figcaption{color:var(--soft);font-size:.9rem}.charts .card{margin:0}
.run{display:inline-flex;align-items:baseline;gap:.45em;overflow-wrap:anywhere}
.dot{flex:none;width:.65em;height:.65em;border-radius:50%}details.card summary{margin:0}
.pill{display:inline-block;border-radius:99px;padding:.02rem .6rem;font-size:.82rem;white-space:nowrap;
border:1px solid var(--line)}
.pill.best{border-color:var(--good);color:var(--good);font-weight:600}
table.wide,.ranks{width:100%}.ranks{font-size:.9rem;margin:.5rem 0}
.ranks td,.ranks th{padding:.18rem .35rem}table.wide{margin:0}.wide small{display:block}.wide tr:last-child td{border-bottom:0}
.note{border-left:4px solid var(--other-0);padding:.1rem .9rem;margin:.6rem 0}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,18rem),1fr));gap:.2rem 1.4rem;align-items:start}
.columns h4{margin:.6rem 0 .2rem;font-size:.92rem}
.columns .passage{max-height:13rem;overflow:auto;margin:.3rem 0;font-size:.9rem}
.query{font-size:1.05rem;font-weight:600;margin:0 0 .3rem;overflow-wrap:anywhere}
.chips{margin:.2rem 0;line-height:1.9}
.chip{display:inline-block;border-radius:6px;padding:0 .5rem;margin:0 .3rem .2rem 0;font-size:.87rem;
overflow-wrap:anywhere;line-height:1.6;background:rgb(var(--plus)/.16)}.chip.minus{background:rgb(var(--minus)/.16)}
.chip b{font-weight:500;font-variant-numeric:tabular-nums;color:var(--soft)}
summary{cursor:pointer;color:var(--soft);margin:.6rem 0}
"""
)


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour per run: that of its lens, or one of the spare colours."""
    others = [name for name in names if name.partition(":")[0] not in lens_types()]
    return {name: lens_colour(name, others.index(name) if name in others else 0) for name in names}


def verdict_card(comparison: Comparison, title: str) -> str:
    """Headline and verdict, followed by remarks on the data."""
    best, *others = comparison.ranking
    significant = bool(others) and comparison.pair(best, others[0]).significant
    sentences = "".join(f"<p>{safe(sentence)}</p>" for sentence in verdict(comparison))
    head = f"{safe(title)}: {safe(headline(comparison))}" if title else safe(headline(comparison))
    kind = "card verdict sure" if significant else "card verdict"
    return f'<div class="{kind}"><h2>{head}</h2>{sentences}</div>{notes_html(comparison)}'


def notes_html(comparison: Comparison) -> str:
    """Remarks on queries that are missing or unjudged."""
    return "".join(f'<p class="note">{safe(note)}.</p>' for note in notes(comparison))


def run_label(name: str, colour: str) -> str:
    """Name of a run behind a dot of its colour."""
    return f'<span class="run"><span class="dot" style="background:{colour}"></span><span>{safe(name)}</span></span>'


def standing_badge(comparison: Comparison, name: str) -> str:
    """Badge: best run, significantly worse than it, or not significantly worse."""
    best = comparison.ranking[0]
    if name == best:
        return '<span class="pill best">★ best</span>'
    pair = comparison.pair(best, name)
    standing = "significantly worse" if pair.significant else "not significantly worse"
    return f'<span class="pill">{standing}</span>'


def gap_to_best(comparison: Comparison, name: str) -> str:
    """Mean difference to the best run, its p-value and its confidence interval."""
    best = comparison.ranking[0]
    if name == best:
        return ""
    pair = comparison.pair(name, best)
    interval = f'<small class="dim">{signed(pair.low, 3)} … {signed(pair.high, 3)}</small>'
    return f'{signed(pair.difference, 3)}, <span class="dim">{format_p(pair.p_holm)}</span>{interval}'


def signed(value: float, digits: int) -> str:
    """Format with a sign, using the Unicode minus, which is as wide as the plus."""
    return f"{value:+.{digits}f}".replace("-", "−")


def pairs_table(pairs: Sequence[RunPair]) -> str:
    """Table of the pairwise comparisons."""
    rows = [
        f"<tr><td>{safe(pair.measure)}</td><td>{safe(pair.first)}</td><td>{safe(pair.second)}</td>"
        f'<td class="number">{signed(pair.difference, 4)}</td>'
        f'<td class="number">{signed(pair.low, 4)} … {signed(pair.high, 4)}</td>'
        f'<td class="number">{pair.wins} / {pair.ties} / {pair.losses}</td>'
        f'<td class="number">{pair.p:.4f}</td><td class="number">{bold_if(f"{pair.p_holm:.4f}", pair.significant)}</td></tr>'
        for pair in pairs
    ]
    numbers = "".join(
        f'<th class="number">{name}</th>' for name in ("mean difference", "95 % CI", "wins / ties / losses", "p", "p, Holm")
    )
    head = f"<tr><th>measure</th><th>first</th><th>second</th>{numbers}</tr>"
    return f'<div class="scroll"><table class="wide">{head}{"".join(rows)}</table></div>'


def bold_if(text: str, condition: bool) -> str:
    """HTML text, bold if the condition holds."""
    return f"<b>{text}</b>" if condition else text


def pairs_section(comparison: Comparison, expanded: bool) -> str:
    """Collapsible table of pairwise comparisons, with the method."""
    if not comparison.pairs:
        return ""
    attribute = " open" if expanded else ""
    return (
        f"<details{attribute}><summary>Pairwise significance tests</summary>{pairs_table(comparison.pairs)}"
        f'<p class="dim">{safe(method(comparison))}</p></details>'
    )


def scatters(comparison: Comparison) -> str:
    """Per-query scatter plots of the best run against each of the others."""
    best, *others = comparison.ranking
    measure, palette = comparison.measures[0], colours(comparison.names)
    cards = []
    for other in others[:MOST_SCATTERS]:
        pair = comparison.pair(best, other)
        first, second = (comparison.values[name][measure] for name in (other, best))
        chart = charts.per_query_scatter(first, second, (other, best), (palette[other], palette[best]))
        caption = f"{best} better on {pair.wins} queries, {pair.ties} ties, {other} better on {pair.losses} queries"
        cards.append(f'<figure class="card">{chart}<figcaption>{safe(caption)}</figcaption></figure>')
    omitted = len(others) - len(cards)
    note = f'<p class="dim">{omitted} more runs are only in the table of pairwise tests.</p>' if omitted > 0 else ""
    return f'<div class="charts small">{"".join(cards)}</div>{note}'


def example_card(example: QueryExample, measure: str, palette: Mapping[str, str]) -> str:
    """An example query: the rank of the relevant document in each run, passages, and the words responsible."""
    title = f"“{safe(example.query)}”" if example.query else f"query {safe(example.query_id)}"
    rows = [
        f'<tr><td>{run_label(name, palette[name])}</td><td class="number">{_rank(rank)}</td>'
        f'<td class="number">{example.values[name]:.3f}</td></tr>'
        for name, rank in sorted(example.ranks.items(), key=lambda item: -example.values[item[0]])
    ]
    table = (
        f'<table class="ranks"><tr><th>run</th><th class="number">rank</th><th class="number">{safe(measure)}</th></tr>'
        f"{''.join(rows)}</table>"
    )
    context = (
        f'<p class="dim">query {safe(example.query_id)} · relevant document <code>{safe(example.doc_id)}</code>'
        + (f" · {safe(example.loser)} ranks <code>{safe(example.rival)}</code> above it" if example.rival else "")
        + "</p>"
    )
    reasons = "".join(_reason(reason, palette.get(reason.lens, "var(--soft)")) for reason in example.reasons)
    body = f'<div class="columns">{table}{_passages(example)}</div>{reasons}'
    return f'<div class="card"><p class="query">{title}</p>{context}{body}</div>'


def _rank(rank: int | None) -> str:
    return str(rank) if rank else '<span class="dim">not retrieved</span>'


def _passages(example: QueryExample) -> str:
    """The relevant document highlighted by the winner, and the rival by the loser; by another lens if these do not explain."""
    if not example.reasons:
        return ""
    by_lens = {reason.lens: reason for reason in example.reasons}
    winner = by_lens.get(example.winner, example.reasons[0])
    loser = by_lens.get(example.loser, example.reasons[-1])
    pieces = [_passage(winner.relevant, winner.lens, "Relevant document")]
    if loser.rival:
        pieces.append(_passage(loser.rival, loser.lens, f"Document that {example.loser} ranks higher"))
    return "".join(pieces)


def _passage(explanation: Explanation, lens: str, title: str) -> str:
    # The parts of a fused score are lenses, which have no position in the text: highlight by the first lens instead.
    source = explanation.children[0] if explanation.children else explanation
    by = f"{source.lens} (part of {lens})" if explanation.children else lens
    return f'<div><h4>{safe(f"{title}, matches of {by}")}</h4><p class="passage">{coloured_passage(source)}</p></div>'


def _reason(reason: Reason, colour: str) -> str:
    """Scores of both documents by one lens, and the words with the largest gains."""
    against = f" against {reason.rival.score:.3f}" if reason.rival else ""
    chips = "".join(
        f'<span class="chip{" minus" if gain < 0 else ""}">{safe(word)} <b>{signed(gain, 3)}</b></span>'
        for word, gain in reason.gains[:MOST_GAINS]
    )
    scores = f'<span class="dim">{reason.relevant.score:.3f}{against}:</span>'
    return f'<p class="chips">{run_label(reason.lens, colour)} {scores} {chips}</p>'

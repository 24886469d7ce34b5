"""Pieces of HTML that the page of a comparison and the report of an evaluation share."""

from collections.abc import Mapping, Sequence

from trilens.evaluate import charts
from trilens.evaluate.comparison import Comparison, Pair
from trilens.evaluate.examples import Example, Why
from trilens.evaluate.verdict import headline, method, notes, shown_p, verdict
from trilens.explain.explanation import Explanation
from trilens.explain.sheet import LENSES, coloured_passage, lens_colour, safe

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
.note{border-left:4px solid var(--sparse);padding:.1rem .9rem;margin:.6rem 0}
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
    """A colour for every run."""
    rest = [name for name in names if name.partition(":")[0] not in LENSES]
    return {name: lens_colour(name, rest.index(name) if name in rest else 0) for name in names}


def verdict_card(comparison: Comparison, title: str) -> str:
    """Who wins, in words."""
    best, *others = comparison.ranking
    sure = bool(others) and comparison.pair(best, others[0]).significant
    words = "".join(f"<p>{safe(sentence)}</p>" for sentence in verdict(comparison))
    head = f"{safe(title)}: {safe(headline(comparison))}" if title else safe(headline(comparison))
    return f'<div class="card verdict{" sure" if sure else ""}"><h2>{head}</h2>{words}</div>{notes_html(comparison)}'


def notes_html(comparison: Comparison) -> str:
    """What was absent."""
    return "".join(f'<p class="note">{safe(note)}.</p>' for note in notes(comparison))


def named(name: str, colour: str) -> str:
    """A run with its colour."""
    return f'<span class="run"><span class="dot" style="background:{colour}"></span><span>{safe(name)}</span></span>'


def standing(comparison: Comparison, name: str) -> str:
    """What a run is against the best one."""
    best = comparison.ranking[0]
    if name == best:
        return '<span class="pill best">★ best</span>'
    pair = comparison.pair(best, name)
    word = "behind" if pair.significant else "not significantly behind"
    return f'<span class="pill">{word}</span>'


def to_the_best(comparison: Comparison, name: str) -> str:
    """The difference to the best run, p, and below them the interval."""
    best = comparison.ranking[0]
    if name == best:
        return ""
    pair = comparison.pair(name, best)
    interval = f'<small class="dim">{signed(pair.low, 3)} … {signed(pair.high, 3)}</small>'
    return f'{signed(pair.difference, 3)}, <span class="dim">{shown_p(pair.p_holm)}</span>{interval}'


def signed(value: float, digits: int) -> str:
    """With a sign in every case, and a minus that is as wide as the plus."""
    return f"{value:+.{digits}f}".replace("-", "−")


def pairs_table(pairs: Sequence[Pair]) -> str:
    """Every two runs, by every measure that was tested."""
    rows = [
        f"<tr><td>{safe(pair.measure)}</td><td>{safe(pair.first)}</td><td>{safe(pair.second)}</td>"
        f'<td class="number">{signed(pair.difference, 4)}</td>'
        f'<td class="number">{signed(pair.low, 4)} … {signed(pair.high, 4)}</td>'
        f'<td class="number">{pair.wins} / {pair.ties} / {pair.losses}</td>'
        f'<td class="number">{pair.p:.4f}</td><td class="number">{_stressed(f"{pair.p_holm:.4f}", pair.significant)}</td></tr>'
        for pair in pairs
    ]
    numbers = "".join(
        f'<th class="number">{name}</th>'
        for name in ("first − second", "95 % interval", "wins / ties / losses", "p", "p, Holm")
    )
    head = f"<tr><th>measure</th><th>first</th><th>second</th>{numbers}</tr>"
    return f'<div class="scroll"><table class="wide">{head}{"".join(rows)}</table></div>'


def _stressed(text: str, important: bool) -> str:
    return f"<b>{text}</b>" if important else text


def pairs_section(comparison: Comparison, open_at_once: bool) -> str:
    """The table of pairs and how its numbers were made."""
    if not comparison.pairs:
        return ""
    opened = " open" if open_at_once else ""
    return (
        f"<details{opened}><summary>Every pair, tested</summary>{pairs_table(comparison.pairs)}"
        f'<p class="dim">{safe(method(comparison))}</p></details>'
    )


def scatters(comparison: Comparison) -> str:
    """The best run against each of the others, query by query."""
    best, *others = comparison.ranking
    measure, paint = comparison.measures[0], colours(comparison.names)
    cards = []
    for other in others[:MOST_SCATTERS]:
        pair = comparison.pair(best, other)
        first, second = (comparison.values[name][measure] for name in (other, best))
        drawn = charts.query_by_query(first, second, (other, best), (paint[other], paint[best]))
        caption = f"{best} better on {pair.wins}, equal on {pair.ties}, {other} better on {pair.losses} queries"
        cards.append(f'<figure class="card">{drawn}<figcaption>{safe(caption)}</figcaption></figure>')
    more = len(others) - len(cards)
    left = f'<p class="dim">{more} more are not drawn; the table of pairs has them.</p>' if more > 0 else ""
    return f'<div class="charts small">{"".join(cards)}</div>{left}'


def example_card(example: Example, measure: str, paint: Mapping[str, str]) -> str:
    """A query, where the relevant document stood in every run, and why."""
    title = f"“{safe(example.query)}”" if example.query else f"query {safe(example.query_id)}"
    rows = [
        f'<tr><td>{named(name, paint[name])}</td><td class="number">{_rank(rank)}</td>'
        f'<td class="number">{example.values[name]:.3f}</td></tr>'
        for name, rank in sorted(example.ranks.items(), key=lambda item: -example.values[item[0]])
    ]
    table = (
        f'<table class="ranks"><tr><th></th><th class="number">its rank</th><th class="number">{safe(measure)}</th></tr>'
        f"{''.join(rows)}</table>"
    )
    said = (
        f'<p class="dim">query {safe(example.query_id)} · relevant document <code>{safe(example.doc_id)}</code>'
        + (f" · {safe(example.loser)} put <code>{safe(example.rival)}</code> above it" if example.rival else "")
        + "</p>"
    )
    reasons = "".join(_reason(why, paint.get(why.lens, "var(--soft)")) for why in example.whys)
    body = f'<div class="columns">{table}{_passages(example)}</div>{reasons}'
    return f'<div class="card"><p class="query">{title}</p>{said}{body}</div>'


def _rank(rank: int | None) -> str:
    return str(rank) if rank else '<span class="dim">not returned</span>'


def _passages(example: Example) -> str:
    """The relevant document as the winner saw it, or the first who explains, and the rival as the loser saw it."""
    if not example.whys:
        return ""
    by_lens = {why.lens: why for why in example.whys}
    first = by_lens.get(example.winner, example.whys[0])
    last = by_lens.get(example.loser, example.whys[-1])
    pieces = [_passage(first.wanted, first.lens, "the relevant document")]
    if last.rival:
        whose = "it" if last.lens == example.loser else example.loser
        pieces.append(_passage(last.rival, last.lens, f"the document that {whose} preferred"))
    return "".join(pieces)


def _passage(one: Explanation, lens: str, what: str) -> str:
    # The parts of a fusion are lenses, which have no place in the text: its first lens shows where it looked.
    seen = one.children[0] if one.children else one
    who = f"{seen.lens}, a part of {lens}," if one.children else lens
    return f'<div><h4>{safe(f"What {who} saw in {what}")}</h4><p class="passage">{coloured_passage(seen)}</p></div>'


def _reason(why: Why, colour: str) -> str:
    """The words that made the difference, as one lens has them."""
    against = f" against {why.rival.score:.3f}" if why.rival else ""
    chips = "".join(
        f'<span class="chip{" minus" if gain < 0 else ""}">{safe(word)} <b>{signed(gain, 3)}</b></span>'
        for word, gain in why.gains[:MOST_GAINS]
    )
    return f'<p class="chips">{named(why.lens, colour)} <span class="dim">{why.wanted.score:.3f}{against}:</span> {chips}</p>'

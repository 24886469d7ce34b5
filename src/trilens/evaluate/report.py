"""Reports as one HTML file: `evaluation_page` of lenses over judged collections, `comparison_page` of any runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from trilens.collection import Collection
from trilens.evaluate.charts import Point, intervals, trade_off
from trilens.evaluate.comparison import Comparison, compare
from trilens.evaluate.evaluation import LensResult
from trilens.evaluate.examples import Example, Finder, with_reasons
from trilens.evaluate.measures import Hit, parse_measures
from trilens.evaluate.sections import (
    STYLE,
    colours,
    example_card,
    named,
    pairs_section,
    scatters,
    standing,
    to_the_best,
    verdict_card,
)
from trilens.evaluate.variants import Variant
from trilens.explain.sheet import safe, sheet
from trilens.text.dataset import Split

EXAMPLES_EACH = 2
READING = """<details class="card"><summary>How to read this</summary>
<p>Every lens answered the same queries, and people had judged before which documents are relevant. A measure of 1 is perfect,
0 is nothing found. A lead is called <b>significant</b> when chance alone would hardly ever make one as large: then it should
hold for other queries of the same kind. A lead that is not significant may be real or luck.</p>
<p>In the plots of cost, up is better and left is cheaper; the dashed line joins the lenses that nothing beats in both. In the
plots of queries, every point is a query: above the diagonal the lens at the left edge answers it better, below the other.</p>
<p>Examples show a relevant document, where each lens ranked it, and the words that made the difference:
<span class="chip">word <b>+0.1</b></span> speaks for it, <span class="chip minus">word <b>−0.1</b></span> for the document that
the loser preferred.</p></details>"""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """One judged collection: what was measured, compared and found worth showing. `bytes` and `examples` are by result.

    `warnings` tell what is odd about the data.
    """

    dataset: str
    split: str
    documents: int
    results: Sequence[LensResult]
    comparison: Comparison
    bytes: Mapping[str, int]
    examples: Mapping[str, Sequence[Example]]
    warnings: Sequence[str]


def gather(
    collection: Collection,
    dataset: str,
    split: Split,
    variants: Sequence[Variant],
    results: Sequence[LensResult],
    warnings: Sequence[str] = (),
    report: Callable[[int], None] = lambda examples: None,
) -> Evaluated:
    """What a report tells of one judged collection; the first measure of judgements is the one that is tested and drawn."""
    runs = {result.lens: result.run for result in results}
    measures = [str(measure) for measure in parse_measures(list(results[0].measures)) if not isinstance(measure, Hit)]
    comparison = compare(runs, split.qrels, measures, tested=measures[:1])
    by_name = {variant.name: variant for variant in variants}
    finder = Finder(comparison, runs, split.qrels, split.texts())
    examples: dict[str, Sequence[Example]] = {}
    for name, others in _families(comparison, by_name).items():
        found = []
        for example in finder.wins_of(name, others, EXAMPLES_EACH) if others else ():
            found.append(_with_reasons(collection, by_name, example))
            report(1)
        examples[name] = found
    sizes: Mapping[str, int] = collection.info()["segment_bytes"]
    bytes_of = {name: sum(sizes.get(lens, 0) for lens in variant.used) for name, variant in by_name.items()}
    return Evaluated(dataset, split.name, len(collection), list(results), comparison, bytes_of, examples, warnings)


def evaluation_page(evaluated: Sequence[Evaluated]) -> str:
    """The report of one or several judged collections."""
    names = ", ".join(one.dataset for one in evaluated)
    pieces = ["<h1>Which lens finds best?</h1>"]
    if len(evaluated) > 1:
        pieces.append(_overview(evaluated))
    pieces.append(READING)
    pieces += [f'<section id="set-{number}">{_dataset(one)}</section>' for number, one in enumerate(evaluated, start=1)]
    return sheet(f"Evaluation: {names}", "".join(pieces), STYLE)


def comparison_page(comparison: Comparison, examples: Sequence[Example], title: str) -> str:
    """The page of a comparison of runs."""
    paint = colours(comparison.names)
    head = "".join(f'<th class="number">{safe(measure)}</th>' for measure in comparison.measures)
    rows = [
        f"<tr><td>{named(name, paint[name])}<small>{standing(comparison, name)}</small></td>{_means(comparison, name)}</tr>"
        for name in comparison.ranking
    ]
    first = [pair for pair in comparison.pairs if pair.measure == comparison.measures[0]]
    pieces = [
        f"<h1>{safe(title)}</h1>",
        verdict_card(comparison, ""),
        f'<div class="card scroll"><table class="wide"><tr><th>run</th>{head}</tr>{"".join(rows)}</table></div>',
        f"<h2>Differences of {safe(comparison.measures[0])}</h2>",
        '<p class="dim">The mean over all queries with its 95 % interval; in colour where it is significant.</p>',
        f'<div class="charts"><figure class="card">{intervals(first)}</figure></div>',
        pairs_section(comparison, open_at_once=True),
        "<h2>Query by query</h2>",
        scatters(comparison),
        "<h2>The queries that differ most</h2>" if examples else "",
        *(example_card(example, comparison.measures[0], paint) for example in examples),
    ]
    return sheet(title, "".join(pieces), STYLE)


def _families(comparison: Comparison, variants: Mapping[str, Variant]) -> dict[str, list[str]]:
    """The best variant of each choice of lenses, best first, and those of other lenses; single ones first, which say more."""
    best: dict[tuple[str, ...], str] = {}
    for name in comparison.ranking:
        best.setdefault(tuple(sorted(variants[name].used)), name)
    single = sorted(comparison.ranking, key=lambda name: len(variants[name].used) > 1)
    return {name: [other for other in single if tuple(sorted(variants[other].used)) != lenses] for lenses, name in best.items()}


def _with_reasons(collection: Collection, variants: Mapping[str, Variant], example: Example) -> Example:
    """Explained by the winner and the loser; a lens that re-ranks without being in the collection explains nothing."""
    able = [name for name in (example.winner, example.loser) if set(variants[name].used) <= set(collection.lenses)]
    return with_reasons(example, {name: partial(variants[name].explain, collection) for name in able})


def _overview(evaluated: Sequence[Evaluated]) -> str:
    """The first measure of every lens on every collection."""
    measure = evaluated[0].comparison.measures[0]
    names = list(dict.fromkeys(name for one in evaluated for name in one.comparison.names))
    paint = colours(names)
    head = "".join(
        f'<th class="number"><a href="#set-{number}">{safe(one.dataset)}</a></th>'
        for number, one in enumerate(evaluated, start=1)
    )
    rows = []
    for name in names:
        cells = [_overview_cell(one.comparison, name) for one in evaluated]
        means = [one.comparison.mean(name) for one in evaluated if name in one.comparison.names]
        mean = f"{sum(means) / len(means):.3f}" if len(means) == len(evaluated) else ""
        rows.append(f'<tr><td>{named(name, paint[name])}</td>{"".join(cells)}<td class="number">{mean}</td></tr>')
    return (
        f'<div class="card scroll"><table class="wide"><tr><th>{safe(measure)}</th>{head}<th class="number">mean</th></tr>'
        f'{"".join(rows)}</table><p class="dim">★ the best of a collection; ≈ not significantly behind it.</p></div>'
    )


def _overview_cell(comparison: Comparison, name: str) -> str:
    if name not in comparison.names:
        return "<td></td>"
    best = comparison.ranking[0]
    value = f"{comparison.mean(name):.3f}"
    if name == best:
        return f'<td class="number"><b>★ {value}</b></td>'
    near = "" if comparison.pair(best, name).significant else "≈ "
    return f'<td class="number">{near}{value}</td>'


def _dataset(one: Evaluated) -> str:
    comparison = one.comparison
    paint = colours(comparison.names)
    measure = comparison.measures[0]
    pieces = [
        verdict_card(comparison, one.dataset),
        f'<p class="dim">{safe(one.dataset)}, {safe(one.split)}: {len(comparison.queries):,} judged queries over '
        f"{one.documents:,} documents.</p>",
        *(f'<p class="note">{safe(warning)}.</p>' for warning in one.warnings),
        _quality(one, paint),
        pairs_section(comparison, open_at_once=False),
        "<h3>What quality costs</h3>",
        _costs(one, paint, measure),
    ]
    if len(comparison.names) > 1:
        pieces += [f"<h3>Query by query, {safe(measure)}</h3>", scatters(comparison)]
        pieces += [_examples(name, found, measure, paint) for name, found in one.examples.items()]
    return "".join(pieces)


def _quality(one: Evaluated, paint: Mapping[str, str]) -> str:
    comparison = one.comparison
    results = {result.lens: result for result in one.results}
    best = {measure: max(result.measures[measure] for result in one.results) for measure in comparison.measures}
    rows = []
    for name in comparison.ranking:
        result = results[name]
        cells = "".join(
            f'<td class="number">{_strong(f"{result.measures[measure]:.3f}", result.measures[measure] == best[measure])}</td>'
            for measure in comparison.measures
        )
        rows.append(
            f"<tr><td>{named(name, paint[name])}<small>{standing(comparison, name)}</small></td>{cells}"
            f'<td class="number">{to_the_best(comparison, name)}</td><td class="number">{result.ms_per_query:.2f}</td>'
            f'<td class="number">{one.bytes[name] / 1e6:,.2f}</td></tr>'
        )
    measures = "".join(f'<th class="number">{safe(measure)}</th>' for measure in comparison.measures)
    head = (
        f'<tr><th>lens</th>{measures}<th class="number">to the best, {safe(comparison.measures[0])}</th>'
        '<th class="number">ms per query</th><th class="number">MB</th></tr>'
    )
    return f'<div class="card scroll"><table class="wide">{head}{"".join(rows)}</table></div>'


def _strong(text: str, strong: bool) -> str:
    return f"<b>{text}</b>" if strong else text


def _costs(one: Evaluated, paint: Mapping[str, str], measure: str) -> str:
    quality = {name: one.comparison.mean(name) for name in one.comparison.names}
    times = [Point(result.lens, result.ms_per_query, quality[result.lens], paint[result.lens]) for result in one.results]
    sizes = [Point(name, one.bytes[name] / 1e6, quality[name], paint[name]) for name in quality if one.bytes[name]]
    return (
        f'<div class="charts"><figure class="card">{trade_off(times, "milliseconds per query", measure)}</figure>'
        f'<figure class="card">{trade_off(sizes, "megabytes on disk", measure)}</figure></div>'
    )


def _examples(name: str, examples: Sequence[Example], measure: str, paint: Mapping[str, str]) -> str:
    if not examples:
        return f"<h3>{named(name, paint[name])} answers no query better than all others</h3>"
    cards = "".join(example_card(example, measure, paint) for example in examples)
    return f"<h3>{named(name, paint[name])} answers best, for example</h3>{cards}"


def _means(comparison: Comparison, name: str) -> str:
    return "".join(f'<td class="number">{comparison.mean(name, measure):.4f}</td>' for measure in comparison.measures)

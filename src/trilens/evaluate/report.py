"""HTML reports: `evaluation_page` evaluates lenses on judged collections, `comparison_page` compares arbitrary runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from trilens.collection import Collection
from trilens.datasets.dataset import Split
from trilens.evaluate.charts import Point, intervals, trade_off
from trilens.evaluate.comparison import Comparison, compare
from trilens.evaluate.evaluation import LensResult
from trilens.evaluate.examples import ExampleFinder, QueryExample, with_reasons
from trilens.evaluate.measures import HitMeasure, parse_measures
from trilens.evaluate.sections import (
    STYLE,
    bold_if,
    colours,
    example_card,
    gap_to_best,
    pairs_section,
    run_label,
    scatters,
    standing_badge,
    verdict_card,
)
from trilens.evaluate.variants import Variant
from trilens.explain.sheet import safe, sheet

EXAMPLES_EACH = 2
READING = """<details class="card"><summary>How to read this report</summary>
<p>Every lens ran the same queries; relevance was judged by people beforehand. Measures range from 0 to 1, higher is better. A
difference is <b>significant</b> if chance alone would rarely produce one as large (p &lt; 0.05), so that it should hold on
other queries of the same kind. A difference that is not significant may be due to chance.</p>
<p>In the cost charts, up is better and left is cheaper; the dashed line is the Pareto frontier: lenses that no cheaper lens
matches. In the per-query charts each point is a query: above the diagonal, the run on the vertical axis is better.</p>
<p>Examples show a relevant document, its rank in each run, and the words that explain the difference:
<span class="chip">word <b>+0.1</b></span> favours the relevant document, <span class="chip minus">word <b>−0.1</b></span> the
document that the worse run ranks higher.</p></details>"""


@dataclass(frozen=True, eq=False)
class DatasetReport:
    """Everything that an evaluation page shows of one judged collection.

    documents   number of documents
    bytes       variant → size of its lenses on disk
    examples    variant → example queries on which it is best
    warnings    anomalies of the data
    """

    dataset: str
    split: str
    documents: int
    results: Sequence[LensResult]
    comparison: Comparison
    bytes: Mapping[str, int]
    examples: Mapping[str, Sequence[QueryExample]]
    warnings: Sequence[str]


def dataset_report(
    collection: Collection,
    dataset: str,
    split: Split,
    variants: Sequence[Variant],
    results: Sequence[LensResult],
    warnings: Sequence[str] = (),
    report: Callable[[int], None] = lambda examples: None,
) -> DatasetReport:
    """Compare the results of one judged collection and collect examples; the first qrels measure is tested and plotted."""
    runs = {result.lens: result.run for result in results}
    measures = [str(measure) for measure in parse_measures(list(results[0].measures)) if not isinstance(measure, HitMeasure)]
    comparison = compare(runs, split.qrels, measures, tested=measures[:1])
    by_name = {variant.name: variant for variant in variants}
    finder = ExampleFinder(comparison, runs, split.qrels, split.texts())
    examples: dict[str, Sequence[QueryExample]] = {}
    for name, rivals in _rivals(comparison, by_name).items():
        explained = []
        for example in finder.wins_of(name, rivals, EXAMPLES_EACH) if rivals else ():
            explained.append(_with_reasons(collection, by_name, example))
            report(1)
        examples[name] = explained
    lens_bytes: Mapping[str, int] = collection.info()["segment_bytes"]
    variant_bytes = {name: sum(lens_bytes.get(lens, 0) for lens in variant.used) for name, variant in by_name.items()}
    return DatasetReport(dataset, split.name, len(collection), list(results), comparison, variant_bytes, examples, warnings)


def evaluation_page(reports: Sequence[DatasetReport]) -> str:
    """HTML report on one or several judged collections."""
    names = ", ".join(report.dataset for report in reports)
    pieces = ["<h1>Retrieval quality by lens</h1>"]
    if len(reports) > 1:
        pieces.append(_overview(reports))
    pieces.append(READING)
    pieces += [f'<section id="set-{number}">{_dataset(report)}</section>' for number, report in enumerate(reports, start=1)]
    return sheet(f"Evaluation: {names}", "".join(pieces), STYLE)


def comparison_page(comparison: Comparison, examples: Sequence[QueryExample], title: str) -> str:
    """HTML page comparing arbitrary runs."""
    palette = colours(comparison.names)
    head = "".join(f'<th class="number">{safe(measure)}</th>' for measure in comparison.measures)
    rows = [f"<tr>{_run_cell(comparison, name, palette)}{_means(comparison, name)}</tr>" for name in comparison.ranking]
    primary = [pair for pair in comparison.pairs if pair.measure == comparison.measures[0]]
    pieces = [
        f"<h1>{safe(title)}</h1>",
        verdict_card(comparison, ""),
        f'<div class="card scroll"><table class="wide"><tr><th>run</th>{head}</tr>{"".join(rows)}</table></div>',
        f"<h2>Differences in {safe(comparison.measures[0])}</h2>",
        '<p class="dim">Mean difference over all queries with its 95 % confidence interval; coloured if significant.</p>',
        f'<div class="charts"><figure class="card">{intervals(primary)}</figure></div>',
        pairs_section(comparison, expanded=True),
        "<h2>Per-query values</h2>",
        scatters(comparison),
        "<h2>Queries with the largest differences</h2>" if examples else "",
        *(example_card(example, comparison.measures[0], palette) for example in examples),
    ]
    return sheet(title, "".join(pieces), STYLE)


def _rivals(comparison: Comparison, variants: Mapping[str, Variant]) -> dict[str, list[str]]:
    """The best variant of each set of lenses, best first, with the variants of all other sets as its rivals.

    Rivals with a single lens come first: their explanations are easier to read than those of fusions.
    """
    lenses = {name: frozenset(variants[name].used) for name in comparison.ranking}
    best: dict[frozenset[str], str] = {}
    for name in comparison.ranking:
        best.setdefault(lenses[name], name)
    single_first = sorted(comparison.ranking, key=lambda name: len(lenses[name]) > 1)
    return {name: [rival for rival in single_first if lenses[rival] != lenses[name]] for name in best.values()}


def _with_reasons(collection: Collection, variants: Mapping[str, Variant], example: QueryExample) -> QueryExample:
    """Add the explanations of winner and loser, unless a variant re-ranks by a lens that the collection does not have."""
    explainable = [name for name in (example.winner, example.loser) if set(variants[name].used) <= set(collection.lenses)]
    return with_reasons(example, {name: partial(variants[name].explain, collection) for name in explainable})


def _overview(reports: Sequence[DatasetReport]) -> str:
    """Table of the primary measure of every lens on every collection."""
    measure = reports[0].comparison.measures[0]
    comparisons = [report.comparison for report in reports]
    names = list(dict.fromkeys(name for comparison in comparisons for name in comparison.names))
    palette = colours(names)
    head = "".join(
        f'<th class="number"><a href="#set-{number}">{safe(report.dataset)}</a></th>'
        for number, report in enumerate(reports, start=1)
    )
    rows = []
    for name in names:
        cells = [_overview_cell(comparison, name) for comparison in comparisons]
        means = [comparison.mean(name) for comparison in comparisons if name in comparison.names]
        mean = f"{sum(means) / len(means):.3f}" if len(means) == len(reports) else ""
        rows.append(f'<tr><td>{run_label(name, palette[name])}</td>{"".join(cells)}<td class="number">{mean}</td></tr>')
    return (
        f'<div class="card scroll"><table class="wide"><tr><th>{safe(measure)}</th>{head}<th class="number">mean</th></tr>'
        f'{"".join(rows)}</table><p class="dim">★ best of a collection; ≈ not significantly worse than the best.</p></div>'
    )


def _overview_cell(comparison: Comparison, name: str) -> str:
    if name not in comparison.names:
        return "<td></td>"
    best = comparison.ranking[0]
    value = f"{comparison.mean(name):.3f}"
    if name == best:
        return f'<td class="number"><b>★ {value}</b></td>'
    marker = "" if comparison.pair(best, name).significant else "≈ "
    return f'<td class="number">{marker}{value}</td>'


def _dataset(report: DatasetReport) -> str:
    """Section of one judged collection."""
    comparison = report.comparison
    palette = colours(comparison.names)
    measure = comparison.measures[0]
    pieces = [
        verdict_card(comparison, report.dataset),
        f'<p class="dim">{safe(report.dataset)}, {safe(report.split)}: {len(comparison.queries):,} judged queries over '
        f"{report.documents:,} documents.</p>",
        *(f'<p class="note">{safe(warning)}.</p>' for warning in report.warnings),
        _quality(report, palette),
        pairs_section(comparison, expanded=False),
        "<h3>Quality against cost</h3>",
        _costs(report, palette, measure),
    ]
    if len(comparison.names) > 1:
        pieces += [f"<h3>Per-query {safe(measure)}</h3>", scatters(comparison)]
        pieces += [_examples(name, examples, measure, palette) for name, examples in report.examples.items()]
    return "".join(pieces)


def _quality(report: DatasetReport, palette: Mapping[str, str]) -> str:
    """Table of measures, latency and size of every variant."""
    comparison = report.comparison
    results = {result.lens: result for result in report.results}
    best = {measure: max(result.measures[measure] for result in report.results) for measure in comparison.measures}
    rows = []
    for name in comparison.ranking:
        result = results[name]
        cells = "".join(
            f'<td class="number">{bold_if(f"{result.measures[measure]:.3f}", result.measures[measure] == best[measure])}</td>'
            for measure in comparison.measures
        )
        rows.append(
            f"<tr>{_run_cell(comparison, name, palette)}{cells}"
            f'<td class="number">{gap_to_best(comparison, name)}</td><td class="number">{result.ms_per_query:.2f}</td>'
            f'<td class="number">{report.bytes[name] / 1e6:,.2f}</td></tr>'
        )
    measures = "".join(f'<th class="number">{safe(measure)}</th>' for measure in comparison.measures)
    head = (
        f'<tr><th>lens</th>{measures}<th class="number">{safe(comparison.measures[0])} vs best</th>'
        '<th class="number">ms per query</th><th class="number">MB</th></tr>'
    )
    return f'<div class="card scroll"><table class="wide">{head}{"".join(rows)}</table></div>'


def _run_cell(comparison: Comparison, name: str, palette: Mapping[str, str]) -> str:
    return f"<td>{run_label(name, palette[name])}<small>{standing_badge(comparison, name)}</small></td>"


def _costs(report: DatasetReport, palette: Mapping[str, str], measure: str) -> str:
    """Trade-off charts of quality against latency and against size."""
    quality = {name: report.comparison.mean(name) for name in report.comparison.names}
    times = [Point(result.lens, result.ms_per_query, quality[result.lens], palette[result.lens]) for result in report.results]
    sizes = [Point(name, report.bytes[name] / 1e6, quality[name], palette[name]) for name in quality if report.bytes[name]]
    return (
        f'<div class="charts"><figure class="card">{trade_off(times, "milliseconds per query", measure)}</figure>'
        f'<figure class="card">{trade_off(sizes, "megabytes on disk", measure)}</figure></div>'
    )


def _examples(name: str, examples: Sequence[QueryExample], measure: str, palette: Mapping[str, str]) -> str:
    if not examples:
        return f"<h3>{run_label(name, palette[name])} is best on no query</h3>"
    cards = "".join(example_card(example, measure, palette) for example in examples)
    return f"<h3>Queries on which {run_label(name, palette[name])} is best</h3>{cards}"


def _means(comparison: Comparison, name: str) -> str:
    return "".join(f'<td class="number">{comparison.mean(name, measure):.4f}</td>' for measure in comparison.measures)

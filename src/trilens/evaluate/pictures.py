"""A comparison of runs as a PNG: mean differences with confidence intervals, and a scatter plot of the best two runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilens.errors import BadInput
from trilens.evaluate.comparison import Comparison, RunPair
from trilens.explain.pictures import ADDED, INSTALL, OWN, REST, plain, require_png


def comparison_picture(comparison: Comparison, file: Path) -> None:
    """Draw a comparison into a PNG file."""
    require_png(file)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput(INSTALL) from error
    pairs = [pair for pair in comparison.pairs if pair.measure == comparison.measures[0]]
    figure = Figure(figsize=(13, max(5.0, 1.6 + 0.32 * len(pairs))), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    _draw_intervals(left, pairs)
    _draw_queries(right, comparison)
    figure.suptitle(f"{comparison.measures[0]} over {len(comparison.queries):,} queries")
    figure.savefig(file, dpi=120)


def _draw_intervals(axes: Any, pairs: Sequence[RunPair]) -> None:
    for row, pair in enumerate(pairs):
        colour = OWN if pair.significant else REST
        axes.plot([pair.low, pair.high], [row, row], color=colour, linewidth=3, solid_capstyle="round")
        axes.plot([pair.difference], [row], "o", color=colour, markersize=8)
    axes.set_yticks(range(len(pairs)), [plain(f"{pair.first} − {pair.second}") for pair in pairs])
    axes.invert_yaxis()
    axes.margins(y=0.1)
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.grid(axis="x", alpha=0.3)
    axes.set(xlabel="mean difference, 95 % confidence interval", title="blue: significant after Holm correction")


def _draw_queries(axes: Any, comparison: Comparison) -> None:
    best, second = comparison.ranking[:2]
    pair = comparison.pair(best, second)
    y, x = (comparison.values[name][comparison.measures[0]] for name in (best, second))
    colours = [OWN if above > below else ADDED if below > above else REST for above, below in zip(y, x, strict=True)]
    axes.scatter(x, y, c=colours, alpha=0.5, edgecolors="none", s=45)
    axes.axline((0, 0), slope=1, color="#888888", linewidth=0.8, linestyle="--")
    axes.set(xlabel=plain(second), ylabel=plain(best), title=f"{pair.wins} better, {pair.ties} equal, {pair.losses} worse")

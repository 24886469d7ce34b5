"""A comparison as a picture: the mean differences with their intervals, and the best two runs query by query."""

from pathlib import Path
from typing import Any

from trilens.errors import BadInput
from trilens.evaluate.comparison import Comparison
from trilens.explain.pictures import ADDED, INSTALL, OWN, REST, plain, require_png


def comparison_picture(comparison: Comparison, file: Path) -> None:
    """Draw it into a PNG file."""
    require_png(file)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput(INSTALL) from error
    pairs = [pair for pair in comparison.pairs if pair.measure == comparison.measures[0]]
    figure = Figure(figsize=(13, max(5.0, 1.6 + 0.32 * len(pairs))), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    _draw_intervals(left, comparison)
    _draw_queries(right, comparison)
    figure.suptitle(f"{comparison.measures[0]} over {len(comparison.queries):,} queries")
    figure.savefig(file, dpi=120)


def _draw_intervals(axes: Any, comparison: Comparison) -> None:
    pairs = [pair for pair in comparison.pairs if pair.measure == comparison.measures[0]]
    for row, pair in enumerate(pairs):
        ink = OWN if pair.significant else REST
        axes.plot([pair.low, pair.high], [row, row], color=ink, linewidth=3, solid_capstyle="round")
        axes.plot([pair.difference], [row], "o", color=ink, markersize=8)
    axes.set_yticks(range(len(pairs)), [plain(f"{pair.first} − {pair.second}") for pair in pairs])
    axes.invert_yaxis()
    axes.margins(y=0.1)
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.grid(axis="x", alpha=0.3)
    axes.set(xlabel="mean difference, 95 % interval", title="blue: significant after Holm's correction")


def _draw_queries(axes: Any, comparison: Comparison) -> None:
    best, second = comparison.ranking[:2]
    pair = comparison.pair(best, second)
    up, across = (comparison.values[name][comparison.measures[0]] for name in (best, second))
    inks = [OWN if high > low else ADDED if low > high else REST for high, low in zip(up, across, strict=True)]
    axes.scatter(across, up, c=inks, alpha=0.5, edgecolors="none", s=45)
    axes.axline((0, 0), slope=1, color="#888888", linewidth=0.8, linestyle="--")
    axes.set(xlabel=plain(second), ylabel=plain(best), title=f"{pair.wins} better, {pair.ties} equal, {pair.losses} worse")

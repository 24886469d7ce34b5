"""Plots of recall against latency: the Pareto frontier of each contender, and its other settings as faint points."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """Rows of one contender; `style` distinguishes lines of the same colour."""

    label: str
    system: str
    rows: Sequence[Row]
    style: str = "-"


def frontier(rows: Sequence[Row]) -> list[Row]:
    """Pareto-optimal settings by latency and recall, fastest first."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: (row["ms_median"], -row["recall_at_10"])):
        if not kept or row["recall_at_10"] > kept[-1]["recall_at_10"]:
            kept.append(row)
    return kept


def plot(lines: Sequence[Line], title: str, path: Path) -> None:
    """Draw the lines into a PNG file, with one colour per system."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    systems = dict.fromkeys(line.system for line in lines)
    colours = dict(zip(systems, matplotlib.rcParams["axes.prop_cycle"].by_key()["color"], strict=False))
    for line in lines:
        colour = colours[line.system]
        axes.plot(*_points(frontier(line.rows)), color=colour, marker=".", linestyle=line.style, label=line.label)
        axes.plot(*_points(line.rows), color=colour, marker=".", linestyle="", alpha=0.25)
    axes.set(xscale="log", xlabel="milliseconds per query (median)", ylabel="recall@10 of exact search", title=title)
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def _points(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Latencies and recalls."""
    return [row["ms_median"] for row in rows], [row["recall_at_10"] for row in rows]

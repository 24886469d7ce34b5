"""Selection of recorded rows and their rendering as Markdown tables."""

from typing import Any

from benchmarks.record import missing, rows

Row = dict[str, Any]


def newest(chapter: str, *names: str) -> dict[tuple[Any, ...], Row]:
    """Last row of each combination of the named fields."""
    return {tuple(row[name] for name in names): row for row in rows(chapter)}


def last_runs(chapter: str, *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows of the last run of each combination of the named fields."""
    runs: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows(chapter):
        key = tuple(row[name] for name in names)
        if key not in runs or runs[key][0]["run"] != row["run"]:
            runs[key] = []
        runs[key].append(row)
    return runs


def markdown(header: list[str], lines: list[list[str]]) -> str:
    """A Markdown table; all columns but the first are right-aligned."""
    marks = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *lines))


def not_measured(chapter: str) -> str:
    """Sentence on the peers that could not be measured; empty if there are none."""
    reasons = [f"{system}: {reason}" for system, reason in sorted(missing(chapter).items())]
    return f"\n\nNot measured — {'; '.join(reasons)}." if reasons else ""


def times(ratio: float) -> str:
    """Speed ratio of trilens to a peer."""
    return f"{ratio:.1f}× as fast"

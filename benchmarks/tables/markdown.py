"""Rows into Markdown."""

from typing import Any

from benchmarks.record import missing, rows

Row = dict[str, Any]


def newest(chapter: str, *names: str) -> dict[tuple[Any, ...], Row]:
    """The last row for each combination of the named facts."""
    return {tuple(row[name] for name in names): row for row in rows(chapter)}


def last_runs(chapter: str, *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of the last run for each combination of the named facts."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows(chapter):
        key = tuple(row[name] for name in names)
        if key not in found or found[key][0]["run"] != row["run"]:
            found[key] = []
        found[key].append(row)
    return found


def markdown(header: list[str], lines: list[list[str]]) -> str:
    """A Markdown table, numbers to the right."""
    marks = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *lines))


def not_measured(chapter: str) -> str:
    """The peers that could not take part, each with the reason; nothing if there is none."""
    reasons = [f"{system}: {reason}" for system, reason in sorted(missing(chapter).items())]
    return f"\n\nNot measured — {'; '.join(reasons)}." if reasons else ""


def times(ratio: float) -> str:
    """How many times as fast trilens is."""
    return f"{ratio:.1f}× as fast"

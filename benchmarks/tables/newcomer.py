"""The time until a first answer."""

from benchmarks.tables.markdown import Row, markdown, newest

STEPS = {
    "clone_install": "clone: installation",
    "demo_first": "clone: demo, first answer",
    "demo_all": "clone: demo, answers of all lenses",
    "wheel_install": "wheel: installation",
    "index": "wheel: index of {documents} documents",
    "search": "wheel: first search",
}


def newcomer() -> str:
    """The steps, from the last row of each tree."""
    last = [row for _, row in sorted(newest("newcomer", "tree").items())]
    header = ["seconds of wall-clock time / of CPU", *(f"{row['tree']}, {row['tree_commit']}" for row in last)]
    return markdown(header, [[what.format_map(last[-1]), *(_cell(row, step) for row in last)] for step, what in STEPS.items()])


def _cell(row: Row, step: str) -> str:
    return f"{row[f'{step}_wall_median']:.1f} / {row[f'{step}_cpu_median']:.1f}"

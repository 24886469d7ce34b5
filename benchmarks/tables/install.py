"""The size of an installation and the start of commands."""

from benchmarks.tables.markdown import Row, markdown, newest

HEADER = [
    "default installation",
    "packages",
    "MB",
    "MB without bytecode",
    "import, CPU ms",
    "--version, CPU s",
    "--help, CPU s",
    "search, CPU s",
]


def install() -> str:
    """The last row of each tree."""
    return markdown(HEADER, [_line(row) for row in newest("install", "tree").values()])


def _line(row: Row) -> list[str]:
    sizes = [f"{row['packages']}", f"{row['megabytes']:.0f}", f"{row['megabytes_without_bytecode']:.0f}"]
    times = [f"{row[f'{name}_seconds_median']:.2f}" for name in ("version", "help", "search")]
    return [f"{row['tree']}, {row['tree_commit']}", *sizes, f"{row['import_ms_median']:.1f}", *times]

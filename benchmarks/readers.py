"""CPU time of the HTML reader, the Markdown reader and the passage splitter on pathological input.

    ./scripts/bench readers

Each input is one piece of markup or text, repeated. Patterns that backtrack, or that scan to the end of the file from many
positions, take quadratic time on such input. `growth` is the time of the long input per character, divided by that of an input
a quarter as long: about 1 if the time is linear, about 4 if it is quadratic. CPU time, unlike elapsed time, hardly depends on
what else the machine does.
"""

import argparse
import hashlib
from collections.abc import Callable
from statistics import median
from time import process_time

from benchmarks.record import record
from trilens.read.html import read_html
from trilens.read.markdown import read_markdown
from trilens.text.passages import split_passages

REPEATS = 5
RATIO = 4
HTML_PIECES = ("<div><p>", "<div><p>word ", "<!--", "<a ", "<a b='", "<![wrong[ ", "<", "&")
MARKDOWN_PIECES = ("*a ", " _a", "[", "[a](", "![a](", "`", "<", "<!--", "# ", "> ", "| ", "a ", "   ", "\\", "- a\n", "[^a]")
PASSAGE_PIECES = ("The cat sat on the mat. ", "word ", "今天很好。", ".", "a.", '"', "\n  ", "a\n\n", "ภาษา ")
CASES: dict[str, tuple[Callable[[str], object], tuple[str, ...], int]] = {
    "html": (read_html, HTML_PIECES, 400_000),
    "markdown": (read_markdown, MARKDOWN_PIECES, 60_000),
    "passages": (split_passages, PASSAGE_PIECES, 1_000_000),
}


def cpu_seconds(work: Callable[[str], object], text: str) -> list[float]:
    """CPU times of several runs, after one that is not counted."""
    work(text)
    times = []
    for _ in range(REPEATS):
        start = process_time()
        work(text)
        times.append(process_time() - start)
    return times


def measure(name: str, work: Callable[[str], object], piece: str, characters: int) -> None:
    """Record the time of a long input, and how it grows from one a quarter as long."""
    long = piece * (characters // len(piece))
    short = piece * (characters // RATIO // len(piece))
    long_times, short_times = cpu_seconds(work, long), cpu_seconds(work, short)
    record(
        "readers",
        data=hashlib.blake2b(long.encode(), digest_size=8).hexdigest(),
        threads=1,
        seed=None,
        repeats=REPEATS,
        reader=name,
        piece=piece,
        characters=len(long),
        cpu_ms_median=round(1000 * median(long_times), 3),
        cpu_ms_best=round(1000 * min(long_times), 3),
        cpu_ms_worst=round(1000 * max(long_times), 3),
        growth=round(min(long_times) / len(long) / (min(short_times) / len(short)), 2),
    )


def main() -> None:
    """Measure every input of every reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", choices=list(CASES), action="append", help="only these readers")
    options = parser.parse_args()
    for name in options.reader or CASES:
        work, pieces, characters = CASES[name]
        for piece in pieces:
            measure(name, work, piece, characters)


if __name__ == "__main__":
    main()

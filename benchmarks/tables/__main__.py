"""Tables and plots of README.md, BOOK.md and the card of the bundled model, made from recorded rows.

python -m benchmarks.tables            rewrite them
python -m benchmarks.tables --check    fail if a table differs from the rows

Where $TRILENS_RESULTS names another folder of results, the pages are written there.
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.record import COMMITTED, RESULTS, ROOT
from benchmarks.tables import curves, quality, races, speed, summary
from benchmarks.tables.markdown import not_measured
from trilens.store.config import DEFAULT_MODEL

CARD = ROOT / "src" / "trilens" / "models" / DEFAULT_MODEL / "README.md"
PAGES = (ROOT / "README.md", ROOT / "benchmarks" / "BOOK.md", CARD)
MARKED = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)
# Each table with the results that it is made from.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "quality": ("quality", quality.quality),
    "recall": ("quality", quality.recall),
    "tuned": ("quality", quality.tuned),
    "precision": ("quality", quality.precision),
    "significance": ("significance", quality.significance),
    "words": ("words", quality.words),
    "ablations": ("ablations", quality.ablations),
    "recipes": ("recipes", quality.recipes),
    "token-training": ("token-training", quality.token_training),
    "speed": ("bm25", summary.speed),
    "bm25": ("bm25", speed.bm25),
    "multi": ("multi", races.multi),
    "sparse": ("sparse", races.sparse),
    "sparse-rounding": ("sparse-quality", speed.sparse_rounding),
    "dense": ("dense", races.dense),
    "growth": ("multi", races.growth),
    "encode": ("encode", speed.encode),
    "endtoend": ("endtoend", speed.endtoend),
    "store": ("store", speed.store),
    "serve": ("serve", speed.serve),
    "train": ("train", speed.train),
}


def fill(text: str) -> str:
    """A page with every table made anew."""
    return MARKED.sub(lambda found: f"{found[1]}{table(found[2])}\n{found[3]}", text)


def table(name: str) -> str:
    """One table, with the peers that could not be measured; a line that says so where there are no rows yet."""
    if name not in TABLES:
        sys.exit(f"a page asks for the table {name!r}; expected one of {', '.join(TABLES)}")
    chapter, make = TABLES[name]
    if not (RESULTS / f"{chapter}.jsonl").exists():
        return f"*No rows are recorded in `results/{chapter}.jsonl` yet.*"
    return make() + not_measured(chapter)


def target(page: Path) -> Path:
    """Where a page is written: trials leave the repository as it is."""
    return page if RESULTS == COMMITTED else RESULTS / page.relative_to(ROOT)


def main() -> None:
    """Rewrite or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        filled = fill(text)
        if options.check and filled != text:
            sys.exit(f"{page.name} differs from {RESULTS}: run python -m benchmarks.tables")
        if not options.check:
            target(page).parent.mkdir(parents=True, exist_ok=True)
            target(page).write_text(filled, encoding="utf-8")
    if not options.check:
        races.plots()
        curves.draw()


if __name__ == "__main__":
    main()

"""Generates the tables and plots of README.md, BOOK.md, docs and the model card from recorded rows.

python -m benchmarks.tables            rewrite the tables
python -m benchmarks.tables --check    fail if a table differs from the rows

If $TRILENS_RESULTS names another results folder, the pages are written there.
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.record import COMMITTED, RESULTS, ROOT
from benchmarks.sizes import CHAPTERS
from benchmarks.tables import curves, everyday, install, newcomer, quality, races, readers, sizes, soak, speed, summary
from benchmarks.tables.markdown import not_measured
from trilens.store.config import DEFAULT_MODEL

CARD = ROOT / "src" / "trilens" / "models" / DEFAULT_MODEL / "README.md"
PAGES = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "sizes.md", ROOT / "benchmarks" / "BOOK.md", CARD)
MARKED = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)
# Table → chapter of its rows, and the function that renders it.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "quality": ("quality", quality.quality),
    "recall": ("quality", quality.recall),
    "tuned": ("quality", quality.tuned),
    "precision": ("quality", quality.precision),
    "significance": ("significance", quality.significance),
    "everyday-dev": ("everyday", everyday.dev),
    "everyday-test": ("everyday", everyday.test),
    "everyday-models": ("everyday", everyday.models),
    "everyday-agreement": ("everyday-agreement", everyday.agreement),
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
    "readers": ("readers", readers.readers),
    "serve": ("serve", speed.serve),
    "soak": ("soak", soak.soak),
    "install": ("install", install.install),
    "newcomer": ("newcomer", newcomer.newcomer),
    "train": ("train", speed.train),
    "trees": ("trees", speed.trees),
}
# Short forms for README.md; the book holds the full tables.
SHORT_TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "quality-short": ("quality", quality.quality_short),
    "speed-short": ("bm25", summary.speed_short),
}
# Tables of docs/sizes.md, which are computed from the rows of several chapters.
SIZES: dict[str, Callable[[], str]] = {
    "sizes-costs": sizes.costs,
    "sizes-setups": sizes.setups,
    "sizes-plan": sizes.plan,
    "sizes-needs": sizes.needs,
    "sizes-tails": sizes.tails,
}


def fill(text: str) -> str:
    """Regenerate every table of a page."""
    return MARKED.sub(lambda match: f"{match[1]}{table(match[2])}\n{match[3]}", text)


def table(name: str) -> str:
    """Render one table, with the peers that could not be measured; a placeholder if there are no rows."""
    tables = TABLES | SHORT_TABLES
    if name not in tables and name not in SIZES:
        sys.exit(f"a page contains the table {name!r}; expected one of {', '.join([*tables, *SIZES])}")
    chapters = CHAPTERS if name in SIZES else (tables[name][0],)
    for chapter in chapters:
        if not (RESULTS / f"{chapter}.jsonl").exists():
            return f"*No rows are recorded in `results/{chapter}.jsonl` yet.*"
    if name in SIZES:
        return SIZES[name]()
    return tables[name][1]() + not_measured(tables[name][0])


def target(page: Path) -> Path:
    """Output path of a page; trial runs do not modify the repository."""
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
        soak.draw()


if __name__ == "__main__":
    main()

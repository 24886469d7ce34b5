"""Tables in the README, made from recorded rows.

python -m benchmarks.tables            rewrite them
python -m benchmarks.tables --check    fail if the README differs from the rows
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, rows

LEVELS = (0.90, 0.95, 0.99)  # of recall, at which approximate searches are compared
THOROUGH = 0.98  # the recall that a search must be able to reach
README = Path(__file__).parent.parent / "README.md"


def newest(chapter: str, *names: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The last row for each combination of the named facts."""
    return {tuple(row[name] for name in names): row for row in rows(chapter)}


def markdown(header: list[str], lines: list[list[str]]) -> str:
    """A Markdown table, numbers to the right."""
    marks = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *lines))


def bm25() -> str:
    """Speed of BM25 against its peers."""
    header = ["BM25, one thread, k = 10", "documents", "ms per query", "trilens is", "index seconds", "index MB"]
    found = newest("bm25", "documents", "system")
    lines = []
    for (documents, system), row in sorted(found.items(), key=lambda item: (item[0][0], item[1]["ms_per_query_median"])):
        ratio = row["ms_per_query_median"] / found[documents, "trilens"]["ms_per_query_median"]
        lines.append(
            [
                system,
                f"{documents:,}",
                f"{row['ms_per_query_median']:.3f}",
                "" if system == "trilens" else f"{ratio:.1f}× as fast",
                "" if row["index_seconds"] is None else f"{row['index_seconds']:.1f}",
                f"{row['index_bytes'] / 1e6:.0f}",
            ]
        )
    return markdown(header, lines)


def store() -> str:
    """What opening costs."""
    header = ["opening a collection of", "milliseconds (median)", "memory, MB (worst)"]
    found = newest("store", "documents")
    return markdown(
        header,
        [
            [f"{row['documents']:,} documents", f"{row['open_ms_median']:.1f}", f"{row['memory_mb_worst']:.1f}"]
            for _, row in sorted(found.items())
        ],
    )


def quality() -> str:
    """nDCG@10 of each lens, and of the float32 reference of the bundled model."""
    found = newest("quality", "dataset", "system")
    datasets = list(dict.fromkeys(dataset for dataset, _ in found))
    systems = list(dict.fromkeys(system for _, system in found))
    cells = {key: f"{row['nDCG@10']:.3f}" for key, row in found.items()}
    lines = [[system, *(cells.get((name, system), "") for name in datasets)] for system in systems]
    return markdown(["nDCG@10", *datasets], lines)


def multi_runs() -> dict[tuple[str, int, int, str, str], list[dict[str, Any]]]:
    """The rows of the last run of each corpus, number of documents and of threads, system and kind of grid."""
    found: dict[tuple[str, int, int, str, str], list[dict[str, Any]]] = {}
    for row in rows("multi"):
        key = (row["corpus"], row["documents"], row["threads"], row["system"], row["grid"])
        if key not in found or found[key][0]["run"] != row["run"]:
            found[key] = []
        found[key].append(row)
    return found


def multi() -> str:
    """The multi lens at each recall that a peer reaches, and as it is by default."""
    header = ["token vectors, 4 bits, k = 10", "documents", "threads", "recall@10", "ms per query", "trilens, same recall"]
    header += ["trilens is", "build seconds", "bytes per token"]
    runs = {key[:4]: found for key, found in multi_runs().items() if key[4] == "all"}
    lines: list[list[str]] = []
    for race in sorted({key[:3] for key in runs if key[3] != "trilens"}):
        ours = runs.get((*race, "trilens"), [])
        for key, found in sorted(runs.items()):
            if key[:3] == race and key[3] != "trilens":
                lines += [multi_line(row, ours) for row in frontier(found)]
        lines += [multi_line(row, []) for row in ours if row["default"]]
        lines += [multi_line(row, []) for row in frontier(ours) if row["recall_at_10"] >= THOROUGH][:1]
    return markdown(header, lines)


def multi_line(row: dict[str, Any], ours: list[dict[str, Any]]) -> list[str]:
    """One setting beside the fastest of ours that finds as much."""
    times = [our["ms_median"] for our in ours if our["recall_at_10"] >= row["recall_at_10"]]
    best = min(times, default=None)
    return [
        f"{row['system']} {row['version']}" + (f", {ours_name(row)}" if row["system"] == "trilens" else ""),
        f"{row['documents']:,}",
        f"{row['threads']}",
        f"{row['recall_at_10']:.3f}",
        f"{row['ms_median']:.2f}",
        f"{best:.2f}" if best else "not reached" if ours else "",
        f"{row['ms_median'] / best:.1f}× as fast" if best else "",
        f"{row['build_seconds']:.0f}",
        f"{row['bytes_per_token']:.0f}",
    ]


def ours_name(row: dict[str, Any]) -> str:
    """What a setting of ours is called in the table."""
    return "default" if row["default"] else str(row["parameters"]["method"])


def frontier(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The settings than which none is faster and finds as much, from fast to thorough."""
    kept: list[dict[str, Any]] = []
    for row in sorted(found, key=lambda row: (row["ms_median"], -row["recall_at_10"])):
        if not kept or row["recall_at_10"] > kept[-1]["recall_at_10"]:
            kept.append(row)
    return kept


def growth() -> str:
    """The multi lens with its own choice of parameters as a collection grows."""
    header = ["multi lens, default, one thread", "documents", "tokens", "recall@10", "ms per query", "times the half"]
    grown = {key[:2]: found[0] for key, found in multi_runs().items() if key[2:] == (1, "trilens", "default")}
    lines = []
    for (corpus, documents), row in sorted(grown.items()):
        half = next((grown[corpus, size] for size in (documents // 2,) if (corpus, size) in grown), None)
        times = f"{row['ms_median'] / half['ms_median']:.2f}" if half else ""
        numbers = [f"{documents:,}", f"{row['tokens']:,}", f"{row['recall_at_10']:.3f}", f"{row['ms_median']:.2f}", times]
        lines.append([corpus, *numbers])
    return markdown(header, lines)


def sparse() -> str:
    """The sparse lens against each peer: exact ones as they are, others at their fastest for each recall."""
    header = ["vectors over the vocabulary, one thread, k = 10", "documents", "terms each", "recall@10", "ms per query"]
    header += ["trilens, same recall", "trilens is", "build seconds", "index MB"]
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows("sparse"):
        key = (row["shape"], row["system"])
        if key not in runs or runs[key][0]["run"] != row["run"]:
            runs[key] = []
        runs[key].append(row)
    lines: list[list[str]] = []
    for shape in sorted({shape for shape, _ in runs}, reverse=True):
        ours = runs[shape, "trilens"]
        for (other, system), found in runs.items():
            if other == shape and system != "trilens":
                lines += [sparse_line(row, ours) for row in at_levels(found)]
        lines += [sparse_line(row, []) for row in ours if row["parameters"].get("method") == "exact"]
    return markdown(header, lines)


def at_levels(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fastest setting that reaches each recall that is compared at; one alone is as it is."""
    if len(found) == 1:
        return found
    reached = [[row for row in found if row["recall_at_10"] >= level] for level in LEVELS]
    return [min(some, key=lambda row: float(row["ms_median"])) for some in reached if some]


def sparse_line(row: dict[str, Any], ours: list[dict[str, Any]]) -> list[str]:
    """One setting beside the fastest of ours that finds as much; peers that do not round are compared with our exact search."""
    wanted = min(row["recall_at_10"], max((our["recall_at_10"] for our in ours), default=0))
    as_good = [our for our in ours if our["recall_at_10"] >= wanted]
    if row["recall_at_10"] > wanted:
        as_good = [our for our in as_good if our["parameters"].get("method") == "exact"]
    best = min((our["ms_median"] for our in as_good), default=None)
    return [
        f"{row['system']} {row['version']}" + (", exact" if row["system"] == "trilens" else ""),
        f"{row['documents']:,}",
        f"{row['index_bytes'] / row['bytes_per_posting'] / row['documents']:.0f}",
        f"{row['recall_at_10']:.3f}",
        f"{row['ms_median']:.2f}",
        f"{best:.2f}" if best else "not reached" if ours else "",
        f"{row['ms_median'] / best:.1f}× as fast" if best else "",
        f"{row['build_seconds']:.0f}",
        f"{row['index_bytes'] / 1e6:.0f}",
    ]


# Each table with the results that it is made from.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "quality": ("quality", quality),
    "bm25": ("bm25", bm25),
    "multi": ("multi", multi),
    "growth": ("multi", growth),
    "sparse": ("sparse", sparse),
    "store": ("store", store),
}


def fill(text: str) -> str:
    """The README with every table made anew."""
    for name, (chapter, make) in TABLES.items():
        start, end = f"<!-- table: {name} -->", f"<!-- end: {name} -->"
        if start in text and (RESULTS / f"{chapter}.jsonl").exists():
            before, _, rest = text.partition(start)
            text = f"{before}{start}\n{make()}\n{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    """Rewrite or check the README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = README.read_text(encoding="utf-8")
    filled = fill(text)
    if options.check and filled != text:
        sys.exit("README.md differs from benchmarks/results: run python -m benchmarks.tables")
    README.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()

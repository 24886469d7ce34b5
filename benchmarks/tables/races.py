"""Tables and plots of recall against latency: the multi, sparse and dense lenses against peers, and growth."""

from benchmarks.plots import Line, frontier, plot
from benchmarks.record import RESULTS, rows
from benchmarks.tables.markdown import Row, last_runs, markdown, times

LEVELS = (0.90, 0.95, 0.99)  # recall levels at which approximate searches are compared
MULTI = ("corpus", "documents", "threads", "system", "grid")


def multi() -> str:
    """The multi lens at each recall that a peer reaches, with its defaults, and at its most thorough setting."""
    header = ["token vectors, 4 bits, k = 10", "documents", "threads", "recall@10", "ms per query", "trilens, same recall"]
    header += ["trilens is", "build seconds", "bytes per token"]
    runs = {key[:4]: run for key, run in last_runs("multi", *MULTI).items() if key[4] == "all"}
    lines: list[list[str]] = []
    for race in sorted({key[:3] for key in runs if key[3] != "trilens"}):
        ours = runs.get((*race, "trilens"), [])
        for key, run in sorted(runs.items()):
            if key[:3] == race and key[3] != "trilens":
                lines += [multi_line(row, ours) for row in frontier(run)]
        lines += [multi_line(row, []) for row in ours if row["default"]]
        lines += [multi_line(row, []) for row in frontier(ours)[-1:] if not row["default"]]
    return markdown(header, lines)


def multi_line(row: Row, ours: list[Row]) -> list[str]:
    """One setting compared with the fastest setting of trilens that has at least its recall."""
    best = min((our["ms_median"] for our in ours if our["recall_at_10"] >= row["recall_at_10"]), default=None)
    return [
        f"{row['system']} {row['version']}" + (f", {setting_name(row)}" if row["system"] == "trilens" else ""),
        f"{row['documents']:,}",
        f"{row['threads']}",
        *comparison_cells(row, best, ours),
        f"{row['build_seconds']:.0f}",
        f"{row['bytes_per_token']:.0f}",
    ]


def comparison_cells(row: Row, best: float | None, ours: list[Row]) -> list[str]:
    """Recall and latency of a setting, the latency of trilens at that recall, and the speed ratio."""
    return [
        f"{row['recall_at_10']:.3f}",
        f"{row['ms_median']:.2f}",
        f"{best:.2f}" if best else "not reached" if ours else "",
        times(row["ms_median"] / best) if best else "",
    ]


def setting_name(row: Row) -> str:
    """Name of a setting of trilens in the table."""
    return "default" if row["default"] else str(row["parameters"]["method"])


def sparse() -> str:
    """The sparse lens against each peer: exact peers, and approximate ones at their fastest setting per recall level."""
    header = ["learned sparse vectors, one thread, k = 10", "documents", "terms per document", "recall@10", "ms per query"]
    header += ["trilens, same recall", "trilens is", "build seconds", "index MB"]
    runs = last_runs("sparse", "shape", "system")
    lines: list[list[str]] = []
    for shape in sorted({shape for shape, _ in runs}, reverse=True):
        ours = runs[shape, "trilens"]
        for (other, system), run in runs.items():
            if other == shape and system != "trilens":
                lines += [sparse_line(row, ours) for row in at_levels(run)]
        lines += [sparse_line(row, []) for row in ours if row["parameters"].get("method") == "exact"]
    return markdown(header, lines)


def at_levels(rows: list[Row]) -> list[Row]:
    """Fastest setting for each recall level; a single setting is kept unchanged."""
    if len(rows) == 1:
        return rows
    reached = [[row for row in rows if row["recall_at_10"] >= level] for level in LEVELS]
    return [min(candidates, key=lambda row: float(row["ms_median"])) for candidates in reached if candidates]


def sparse_line(row: Row, ours: list[Row]) -> list[str]:
    """One setting compared with the fastest setting of trilens that has at least its recall."""
    best = fastest_as_good(row, ours)
    return [
        f"{row['system']} {row['version']}" + (", exact" if row["system"] == "trilens" else ""),
        f"{row['documents']:,}",
        f"{row['index_bytes'] / row['bytes_per_posting'] / row['documents']:.0f}",
        *comparison_cells(row, best, ours),
        f"{row['build_seconds']:.0f}",
        f"{row['index_bytes'] / 1e6:.0f}",
    ]


def fastest_as_good(row: Row, ours: list[Row]) -> float | None:
    """Milliseconds of the fastest setting of trilens with at least the recall of a peer.

    Quantised weights limit the recall of trilens; peers above that limit are compared with its exact search.
    """
    target = min(row["recall_at_10"], max((our["recall_at_10"] for our in ours), default=0))
    as_good = [our for our in ours if our["recall_at_10"] >= target]
    if row["recall_at_10"] > target:
        as_good = [our for our in as_good if our["parameters"].get("method") == "exact"]
    return min((float(our["ms_median"]) for our in as_good), default=None)


def growth() -> str:
    """Latency and recall of trilens with default parameters as a collection grows."""
    header = ["default parameters, one thread", "documents", "recall@10", "ms per query", "relative to half the documents"]
    grown: dict[tuple[str, int], Row] = {}
    for row in rows("bm25"):
        if row["system"] == "trilens" and row["corpus"].startswith("grown"):
            grown["bm25, sentences recombined", row["documents"]] = {**row, "ms_median": row["ms_per_query_median"]}
    for (corpus, documents, *rest), run in last_runs("multi", *MULTI).items():
        if rest == [1, "trilens", "default"]:
            grown[f"multi, {corpus}", documents] = run[0]
    lines = []
    for (name, documents), row in sorted(grown.items()):
        half = grown.get((name, documents // 2))
        ratio = f"{row['ms_median'] / half['ms_median']:.2f}" if half else ""
        recall = f"{row['recall_at_10']:.3f}" if "recall_at_10" in row else "exact"
        lines.append([name, f"{documents:,}", recall, f"{row['ms_median']:.2f}", ratio])
    return markdown(header, lines)


def dense() -> str:
    """Every setting of every system for dense vectors."""
    header = ["dense vectors, one thread, k = 10", "documents", "recall@10", "ms per query", "build seconds", "index MB"]
    lines = []
    for (_, documents, _), run in sorted(last_runs("dense", "corpus", "documents", "system").items()):
        for row in run:
            setting = ", ".join(f"{name} {value}" for name, value in row["parameters"].items())
            numbers = [f"{documents:,}", f"{row['recall_at_10']:.3f}", f"{row['ms_median']:.3f}"]
            numbers += [f"{row['build_seconds']:.1f}", f"{row['index_bytes'] / 1e6:.0f}"]
            lines.append([" ".join(filter(None, [row["system"], row["version"] + ",", setting])).rstrip(","), *numbers])
    return markdown(header, lines)


def plots() -> None:
    """Draw the plot of every race from its last run."""
    runs = {key[:4]: run for key, run in sorted(last_runs("multi", *MULTI).items()) if key[4] == "all"}
    for corpus, documents in sorted({key[:2] for key in runs}):
        lines = [
            Line(f"{system}, {threads} thread{'s' * (threads > 1)}", system, run, "-" if threads == 1 else "--")
            for (*race, threads, system), run in runs.items()
            if race == [corpus, documents]
        ]
        plot(lines, f"{corpus}, {documents:,} documents", RESULTS / f"multi-{documents}.png")
    shaped = last_runs("sparse", "shape", "system")
    for shape in sorted({shape for shape, _ in shaped}):
        lines = [Line(system, system, run) for (other, system), run in shaped.items() if other == shape]
        documents = lines[0].rows[0]["documents"]
        title = f"{lines[0].rows[0]['vectors']}, {shape}-shaped, {documents:,} documents, one thread"
        plot(lines, title, RESULTS / f"sparse-{shape}-{documents}.png")

"""Tables of times and sizes: BM25, encoding, end-to-end systems, opening, serving, training, source trees."""

from benchmarks.record import rows
from benchmarks.tables.markdown import Row, last_runs, markdown, newest, times


def bm25() -> str:
    """BM25 against its peers, on corpora that at least one peer was measured on."""
    header = ["BM25, one thread, k = 10", "documents", "ms per query", "trilens is", "index seconds", "index MB"]
    lines: list[list[str]] = []
    for documents, race in sorted(bm25_races().items()):
        ours = race["trilens"]["ms_per_query_median"]
        for system, row in sorted(race.items(), key=lambda item: float(item[1]["ms_per_query_median"])):
            faster = times(row["ms_per_query_median"] / ours) if system != "trilens" else ""
            seconds = "" if row["index_seconds"] is None else f"{row['index_seconds']:.1f}"
            numbers = [f"{documents:,}", f"{row['ms_per_query_median']:.3f}", faster, seconds]
            lines.append([system, *numbers, f"{row['index_bytes'] / 1e6:.0f}"])
    return markdown(header, lines)


def bm25_races() -> dict[int, dict[str, Row]]:
    """Number of documents → last race, as rows by system. A race starts with trilens and includes at least one peer."""
    races: dict[int, dict[str, Row]] = {}
    ours: dict[int, Row] = {}
    for row in rows("bm25"):
        documents, system = row["documents"], row["system"]
        if system == "trilens":
            ours[documents] = row
        elif documents in ours:  # otherwise a peer ran alone
            if races.get(documents, {}).get("trilens") is not ours[documents]:
                races[documents] = {"trilens": ours[documents]}
            races[documents][system] = row
    return races


def encode() -> str:
    """Encoding throughput and the quality cost of quantisation."""
    header = ["encoding", "heads", "documents/s", "relative to sentence-transformers", "nDCG@10", "loss"]
    lines = []
    for runs in last_runs("encode", "dataset", "threads").values():
        reference = next((row for row in runs if row["system"] == "sentence-transformers"), None)
        for row in runs:
            ratio = row["per_second_median"] / reference["per_second_median"] if reference else None
            loss = reference["nDCG@10"] - row["nDCG@10"] if reference else None
            name = f"{row['system']}, {row['precision']}, {row['dataset']}, {row['threads']} thread{'s' * (row['threads'] > 1)}"
            numbers = [f"{row['per_second_median']:.0f}", f"{ratio:.2f}" if ratio else ""]
            numbers += [f"{row['nDCG@10']:.4f}", "" if loss is None else f"{loss:+.4f}"]
            lines.append([name, ", ".join(row["heads"]), *numbers])
    return markdown(header, lines)


def endtoend() -> str:
    """End-to-end systems: throughput, size and time to the first answer."""
    header = ["end-to-end systems, k = 10", "documents", "indexing, documents/s", "search, queries/s"]
    header += ["bytes per document", "first answer, s", "nDCG@10"]
    lines = []
    for runs in last_runs("endtoend", "corpus", "documents", "threads").values():
        for row in runs:
            quality = "" if row["nDCG@10"] is None else f"{row['nDCG@10']:.3f}"
            numbers = [
                f"{row['documents']:,}",
                f"{row['documents_per_second']:,.0f}",
                f"{row['queries_per_second_median']:,.1f}",
            ]
            numbers += [f"{row['bytes_per_document']:,.0f}", f"{row['first_answer_seconds_median']:.2f}", quality]
            lines.append([f"{row['system']} {row['version']}", *numbers])
    return markdown(header, lines)


def store() -> str:
    """Time and memory of opening a collection."""
    header = ["opening a collection of", "milliseconds (median)", "memory, MB (worst)"]
    measured = newest("store", "documents")
    return markdown(
        header,
        [
            [f"{row['documents']:,} documents", f"{row['open_ms_median']:.1f}", f"{row['memory_mb_worst']:.1f}"]
            for _, row in sorted(measured.items())
        ],
    )


def serve() -> str:
    """The HTTP service under load."""
    header = ["while another process commits", "clients", "requests/s", "p50 ms", "p95 ms", "failed"]
    return markdown(header, [_served(row) for row in newest("serve", "engine").values()])


def _served(row: Row) -> list[str]:
    numbers = [f"{row['clients']}", f"{row['per_second']:.1f}", f"{row['ms_p50']:.0f}", f"{row['ms_p95']:.0f}"]
    return [row["engine"], *numbers, f"{row['failed']}"]


def train() -> str:
    """Time and memory of the vocabulary head in training."""
    header = ["vocabulary head, forward and backward", "seconds", "speedup", "memory of the pass, MB", "memory reduction"]
    last = {row["form"]: row for row in rows("train")}
    lines = []
    for form, row in last.items():
        numbers = [f"{row['seconds']:.1f}", f"{row['times_faster']:.1f}", f"{row['pass_mb']:,.0f}"]
        lines.append([form, *numbers, f"{row['times_less_pass_memory']:.1f}"])
    return markdown(header, lines)


def trees() -> str:
    """Two source trees of trilens, from the last run on each corpus."""
    header = ["this tree against another, one thread", "ms per query", "other, ms", "ratio", "equal results"]
    lines = []
    for runs in last_runs("trees", "corpus").values():
        for row in runs:
            name = f"{row['kind']}: {' + '.join(row['lenses'])}, {row['corpus']}, {row['commit']} against {row['other']}"
            numbers = [f"{row['ms_median']:.3f}", f"{row['other_ms_median']:.3f}", f"{row['ratio']:.2f}"]
            lines.append([name, *numbers, f"{100 * row['equal_results']:.0f} %"])
    return markdown(header, lines)


def sparse_rounding() -> str:
    """Quality cost of 8-bit weights."""
    lines = [
        [f"{head}, {dataset}", f"{row['nDCG@10 uint8']:.4f}", f"{row['nDCG@10 float32']:.4f}", f"{row['loss']:+.4f}"]
        for (dataset, head), row in newest("sparse-quality", "dataset", "head").items()
    ]
    return markdown(["nDCG@10 of exact search", "uint8", "float32", "loss"], lines)

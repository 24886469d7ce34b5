"""Times and sizes: BM25, the encoder, whole systems, opening, serving, training."""

from benchmarks.record import rows
from benchmarks.tables.markdown import Row, last_runs, markdown, newest, times


def bm25() -> str:
    """Speed of BM25 against its peers, on corpora that a peer was measured on too."""
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
    """The last race over so many documents: rows by system. A race begins with trilens; where it is alone there is none."""
    races: dict[int, dict[str, Row]] = {}
    begun: dict[int, Row] = {}
    for row in rows("bm25"):
        documents, system = row["documents"], row["system"]
        if system == "trilens":
            begun[documents] = row
        elif documents in begun:  # else a peer ran alone
            if races.get(documents, {}).get("trilens") is not begun[documents]:
                races[documents] = {"trilens": begun[documents]}
            races[documents][system] = row
    return races


def encode() -> str:
    """Documents per second and what the rounding costs."""
    header = ["encoding", "heads", "documents per second", "times sentence-transformers", "nDCG@10", "loss"]
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
    """Whole systems: in, out, size, first answer."""
    header = ["whole systems, k = 10", "documents", "documents per second in", "queries per second out"]
    header += ["bytes per document", "first answer, seconds", "nDCG@10"]
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


def serve() -> str:
    """The service under load."""
    header = ["while another process commits", "clients", "requests per second", "p50 ms", "p95 ms", "failed"]
    return markdown(header, [_served(row) for row in newest("serve", "engine").values()])


def _served(row: Row) -> list[str]:
    numbers = [f"{row['clients']}", f"{row['per_second']:.1f}", f"{row['ms_p50']:.0f}", f"{row['ms_p95']:.0f}"]
    return [row["engine"], *numbers, f"{row['failed']}"]


def train() -> str:
    """The vocabulary head in training."""
    header = ["vocabulary head, forward and backward", "seconds", "times faster", "memory of the pass, MB", "times less"]
    last = {row["form"]: row for row in rows("train")}
    lines = []
    for form, row in last.items():
        numbers = [f"{row['seconds']:.1f}", f"{row['times_faster']:.1f}", f"{row['pass_mb']:,.0f}"]
        lines.append([form, *numbers, f"{row['times_less_pass_memory']:.1f}"])
    return markdown(header, lines)


def sparse_rounding() -> str:
    """What 8 bits per weight cost."""
    lines = [
        [f"{head}, {dataset}", f"{row['nDCG@10 uint8']:.4f}", f"{row['nDCG@10 float32']:.4f}", f"{row['loss']:+.4f}"]
        for (dataset, head), row in newest("sparse-quality", "dataset", "head").items()
    ]
    return markdown(["nDCG@10 of exact search", "8 bits", "float32", "loss"], lines)

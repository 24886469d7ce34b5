"""Table and plot of the soak test: what was answered, and the memory and descriptors of the service over time."""

from statistics import median

from benchmarks.record import RESULTS, rows
from benchmarks.tables.markdown import Row, markdown


def last() -> Row | None:
    """The last soak test."""
    return next(reversed(list(rows("soak"))), None)


def soak() -> str:
    """Numbers of the last soak test, one per line."""
    row = last()
    assert row
    memory = [megabytes for _, megabytes, _ in row["samples"]]
    descriptors = [count for _, _, count in row["samples"]]
    lines = [
        ["minutes", f"{row['minutes']:g}"],
        ["clients that search; that are slow", f"{row['clients']}; {row['slow_clients']}"],
        ["searches answered, p50 ms, p99 ms", f"{row['repeats']:,}, {row['ms_p50']:.0f}, {row['ms_p99']:.0f}"],
    ]
    lines += [[f"{kind}, by status", _counts(counts)] for kind, counts in row["statuses"].items()]
    lines += [
        ["lost connections, 5xx but 503 with Retry-After", _counts(row["failed"]) or "0"],
        ["slow connections that were cut", _counts(row["cut"])],
        ["commits by HTTP", f"{row['commits']:,}"],
        ["optimize and backup", _counts(row["done"])],
        ["memory, MB: second quarter, last quarter (medians)", " → ".join(f"{value:.0f}" for value in _quarters(memory))],
        ["descriptors: second quarter, last quarter", " → ".join(f"{value:.0f}" for value in _quarters(descriptors))],
        ["problems in the collection at the end", str(len(row["problems"]))],
    ]
    return markdown(["soak test", "last run"], lines)


def draw() -> None:
    """Plot memory and descriptors over time into an SVG file."""
    row = last()
    if not row:
        return
    import matplotlib
    from matplotlib.figure import Figure

    seconds, memory, descriptors = zip(*row["samples"], strict=True)
    minutes = [second / 60 for second in seconds]
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(minutes, memory, color="C0", label="resident memory, MB")
    axes.set(xlabel="minutes", ylabel="resident memory, MB", ylim=(0, None))
    other = axes.twinx()
    other.plot(minutes, descriptors, color="C1", label="open descriptors")
    other.set(ylabel="open descriptors", ylim=(0, None))
    axes.grid(alpha=0.3)
    figure.legend(loc="lower right", bbox_to_anchor=(0.9, 0.2))
    with matplotlib.rc_context({"svg.hashsalt": "soak"}):  # the same rows give the same file
        figure.savefig(RESULTS / "soak.svg", metadata={"Date": None})


def _quarters(values: list[float]) -> tuple[float, float]:
    """Medians of the second and the last quarter: the first one loads and compiles."""
    quarter = max(1, len(values) // 4)
    return median(values[quarter : 2 * quarter] or values), median(values[-quarter:])


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())

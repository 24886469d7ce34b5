"""The readers on pathological input."""

from benchmarks.tables.markdown import markdown, newest


def readers() -> str:
    """For each reader, its slowest input and the input whose time grows most."""
    rows = list(newest("readers", "reader", "piece").values())
    lines = []
    for reader in dict.fromkeys(row["reader"] for row in rows):
        of_reader = [row for row in rows if row["reader"] == reader]
        slowest = max(of_reader, key=lambda row: float(row["cpu_ms_median"]) / row["characters"])
        nanoseconds = 1e6 * slowest["cpu_ms_median"] / slowest["characters"]
        growth = max(float(row["growth"]) for row in of_reader)
        lines.append([reader, f"{len(of_reader)}", f"{slowest['piece']!r}", f"{nanoseconds:,.0f}", f"{growth:.2f}"])
    return markdown(["reader", "inputs", "slowest input repeats", "CPU ns per character", "highest growth"], lines)

"""Every lens against every peer in a line each, where the peer comes closest: the rest is in the chapters of the book."""

from benchmarks.plots import frontier
from benchmarks.tables.markdown import Row, last_runs, markdown, times
from benchmarks.tables.races import MULTI, at_levels, fastest_as_good
from benchmarks.tables.speed import bm25_races


def speed() -> str:
    """One thread, k = 10; of a peer's runs the one over most documents, at the setting where it comes closest to trilens."""
    header = ["one thread, k = 10", "peer", "documents", "recall@10", "peer, ms", "trilens, ms", "trilens is"]
    races = {"multi": _multi(), "sparse": _sparse(), "dense": _dense()}
    lines = [*_bm25(), *(line for lens, found in races.items() for line in _races(lens, found))]
    return markdown(header, lines)


def _bm25() -> list[list[str]]:
    most, race = max(bm25_races().items())
    ours = race["trilens"]["ms_per_query_median"]
    theirs = {system: row["ms_per_query_median"] for system, row in race.items() if system != "trilens"}
    return [_line("bm25", system, most, "exact", median, ours) for system, median in theirs.items()]


def _multi() -> dict[str, tuple[list[Row], list[Row]]]:
    """The last run of each peer over most documents, and ours."""
    runs = {key[:4]: rows for key, rows in last_runs("multi", *MULTI).items() if key[4] == "all" and key[2] == 1}
    largest = {key[3]: key for key in sorted(runs, key=lambda key: key[1]) if key[3] != "trilens"}
    return {system: (frontier(runs[key]), runs[(*key[:3], "trilens")]) for system, key in largest.items()}


def _sparse() -> dict[str, tuple[list[Row], list[Row]]]:
    runs = last_runs("sparse", "shape", "system")
    return {
        system: (at_levels(rows), runs[shape, "trilens"])
        for (shape, system), rows in runs.items()
        if shape == "vdr" and system != "trilens"
    }


def _dense() -> dict[str, tuple[list[Row], list[Row]]]:
    """Each kind of index that faiss has, and ours."""
    runs = last_runs("dense", "corpus", "documents", "system")
    found: dict[str, tuple[list[Row], list[Row]]] = {}
    for (*race, system), rows in sorted(runs.items()):
        for row in rows if system != "trilens" else ():
            kind = f"{system} {row['parameters']['factory'].split(',')[0].rstrip('0123456789')}"
            found.setdefault(kind, ([], runs[(*race, "trilens")]))[0].append(row)
    return found


def _races(lens: str, races: dict[str, tuple[list[Row], list[Row]]]) -> list[list[str]]:
    lines = []
    for system, (theirs, ours) in races.items():
        compared = [(row, best) for row in theirs if (best := fastest_as_good(row, ours)) is not None]
        row, best = min(compared, key=lambda pair: float(pair[0]["ms_median"]) / pair[1])
        lines.append(_line(lens, system, row["documents"], f"{row['recall_at_10']:.3f}", row["ms_median"], best))
    return lines


def _line(lens: str, peer: str, documents: int, recall: str, theirs: float, ours: float) -> list[str]:
    return [lens, peer, f"{documents:,}", recall, f"{theirs:.2f}", f"{ours:.2f}", times(theirs / ours)]

"""Summary table: every lens against every peer at the peer's most favourable setting."""

from typing import NamedTuple

from benchmarks.plots import frontier
from benchmarks.tables.markdown import Row, last_runs, markdown, times
from benchmarks.tables.races import MULTI, at_levels, fastest_as_good
from benchmarks.tables.speed import bm25_races

HEADER = ["one thread, k = 10", "peer", "documents", "recall@10", "peer, ms", "trilens, ms", "trilens is"]


class Race(NamedTuple):
    """A peer at its most favourable setting, and trilens at the fastest setting with at least its recall."""

    lens: str
    peer: str
    documents: int
    recall: str
    peer_ms: float
    trilens_ms: float

    @property
    def ratio(self) -> float:
        """How many times as fast trilens is."""
        return self.peer_ms / self.trilens_ms


def speed() -> str:
    """One row per peer: its race over the most documents, at the setting where it comes closest to trilens."""
    return markdown(HEADER, [_line(race) for races in _all_races().values() for race in races])


def speed_short() -> str:
    """One row per lens: the peer that comes closest to trilens, or is ahead of it by most."""
    return markdown(HEADER, [_line(min(races, key=lambda race: race.ratio)) for races in _all_races().values()])


def _all_races() -> dict[str, list[Race]]:
    """Lens → one race per peer."""
    races = {"multi": _multi(), "sparse": _sparse(), "dense": _dense()}
    return {"bm25": _bm25(), **{lens: _races(lens, peers) for lens, peers in races.items()}}


def _bm25() -> list[Race]:
    documents, race = max(bm25_races().items())
    ours = race["trilens"]["ms_per_query_median"]
    theirs = {system: row["ms_per_query_median"] for system, row in race.items() if system != "trilens"}
    return [Race("bm25", system, documents, "exact", median, ours) for system, median in theirs.items()]


def _multi() -> dict[str, tuple[list[Row], list[Row]]]:
    """Peer → Pareto-optimal settings of its race over the most documents, and the settings of trilens."""
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
    """Kind of faiss index → its settings, and the settings of trilens."""
    runs = last_runs("dense", "corpus", "documents", "system")
    kinds: dict[str, tuple[list[Row], list[Row]]] = {}
    for (*race, system), rows in sorted(runs.items()):
        for row in rows if system != "trilens" else ():
            kind = f"{system} {row['parameters']['factory'].split(',')[0].rstrip('0123456789')}"
            kinds.setdefault(kind, ([], runs[(*race, "trilens")]))[0].append(row)
    return kinds


def _races(lens: str, races: dict[str, tuple[list[Row], list[Row]]]) -> list[Race]:
    closest = []
    for system, (theirs, ours) in races.items():
        compared = [(row, best) for row in theirs if (best := fastest_as_good(row, ours)) is not None]
        row, best = min(compared, key=lambda pair: float(pair[0]["ms_median"]) / pair[1])
        closest.append(Race(lens, system, row["documents"], f"{row['recall_at_10']:.3f}", row["ms_median"], best))
    return closest


def _line(race: Race) -> list[str]:
    numbers = [f"{race.documents:,}", race.recall, f"{race.peer_ms:.2f}", f"{race.trilens_ms:.2f}", times(race.ratio)]
    return [race.lens, race.peer, *numbers]

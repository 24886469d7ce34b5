"""Everyday questions: systems by collections on each half, measured models, and the agreement of the two passes."""

from statistics import mean

from benchmarks.everyday.questions import SPLITS
from benchmarks.judged import DEFAULT_SEARCH
from benchmarks.record import rows
from benchmarks.tables.markdown import Row, markdown, newest
from trilens.encode.folder import fingerprint_model
from trilens.encode.models import resolve_model
from trilens.store.config import DEFAULT_MODEL

MEASURES = ("RR@10", "Success@3", "nDCG@10")
SHOWN = {"RR@10": "MRR@10"}


def dev() -> str:
    """The dev half, which parameters may be chosen on."""
    return halves("dev")


def test() -> str:
    """The test half."""
    return halves("test")


def halves(split: str) -> str:
    """MRR@10 of each system on each collection, and the means of all measures over the collections, for the bundled model."""
    shown = _shown_model()
    measured = {key[1:]: row for key, row in of_split(split).items() if key[0] == shown}
    datasets = list(dict.fromkeys(dataset for dataset, _ in measured))
    lines = []
    for system in dict.fromkeys(system for _, system in measured):
        of_system = [measured[dataset, system] for dataset in datasets if (dataset, system) in measured]
        cells = [f"{measured[name, system][MEASURES[0]]:.3f}" if (name, system) in measured else "" for name in datasets]
        lines.append([system, *cells, *(_mean(of_system, measure, len(datasets)) for measure in MEASURES)])
    counts = [measured[next(key for key in measured if key[0] == name)]["queries"] for name in datasets]
    header = [
        f"{SHOWN[MEASURES[0]]}, {split} half",
        *(f"{name} ({count})" for name, count in zip(datasets, counts, strict=True)),
    ]
    return markdown([*header, *(f"mean {SHOWN.get(measure, measure)}" for measure in MEASURES)], lines)


def models() -> str:
    """Means over the collections of the default search, by the last rows of each model and its default lenses."""
    last: dict[tuple[str, ...], dict[tuple[str, str], Row]] = {}
    for row in rows("everyday"):
        if row["system"] == DEFAULT_SEARCH:
            last.setdefault((row["model"], *row["lenses"]), {})[row["split"], row["dataset"]] = row
    most = max(len({dataset for _, dataset in found}) for found in last.values())
    lines = []
    for (model, *lenses), found in last.items():
        halves = [[row for (half, _), row in found.items() if half == split] for split in SPLITS]
        lines.append(
            [f"{model}, {' + '.join(lenses)}", *(_mean(half, measure, most) for half in halves for measure in MEASURES)]
        )
    header = [f"{split} {SHOWN.get(measure, measure)}" for split in SPLITS for measure in MEASURES]
    return markdown(["model and its default lenses", *header], lines)


def agreement() -> str:
    """How the two passes over the answers agree."""
    lines = [
        [
            row["collection"],
            f"{row['questions']:,}",
            f"{row['kept']:,}",
            f"{row['agreed']:.0%}",
            f"{row['overlap']:.2f}",
            *(f"{row[f'answers_{which}']:.1f}" for which in ("first", "second", "kept")),
        ]
        for row in newest("everyday-agreement", "collection").values()
    ]
    answers = [f"answers, {which}" for which in ("first pass", "second pass", "kept")]
    return markdown(["collection", "questions", "kept", "share kept", "mean overlap", *answers], lines)


def of_split(split: str) -> dict[tuple[str, str, str], Row]:
    """Last row of each model, collection and system on a half."""
    return {(row["model"], row["dataset"], row["system"]): row for row in rows("everyday") if row["split"] == split}


def _shown_model() -> str:
    """The bundled model if it is measured, else the last measured one."""
    recorded = [str(row["model"]) for row in rows("everyday")]
    bundled = fingerprint_model(resolve_model(DEFAULT_MODEL))
    return bundled if bundled in recorded else recorded[-1]


def _mean(found: list[Row], measure: str, expected: int) -> str:
    return f"{mean(row[measure] for row in found):.3f}" if len(found) == expected else ""

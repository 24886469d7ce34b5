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
    """Means over the collections of the default search, for each model and commit; equal results of a model are listed once."""
    runs: dict[tuple[str, str], list[Row]] = {}
    for row in rows("everyday"):
        if row["system"] == DEFAULT_SEARCH:
            runs.setdefault((row["model"], row["commit"]), []).append(row)
    most = max(len({row["dataset"] for row in found}) for found in runs.values())
    lines: dict[tuple[str, ...], list[str]] = {}
    for (model, commit), found in runs.items():
        halves = [list({row["dataset"]: row for row in found if row["split"] == split}.values()) for split in SPLITS]
        cells = [_mean(half, measure, most) for half in halves for measure in MEASURES]
        title = f"{found[-1]['model_name']} ({model[:8]}), {' + '.join(found[-1]['lenses'])}, {commit}"
        lines.setdefault((model, *cells), [title, *cells])
    header = [f"{split} {SHOWN.get(measure, measure)}" for split in SPLITS for measure in MEASURES]
    return markdown(["model, lenses, commit", *header], list(lines.values()))


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

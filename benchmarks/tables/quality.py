"""How good the answers are: every lens and fusion on the judged collections, and what parts of a lens are worth."""

from collections.abc import Mapping, Sequence
from statistics import mean

from benchmarks.recipes import VARIANTS
from benchmarks.record import rows
from benchmarks.tables.markdown import Row, markdown, newest
from trilens.encode.folder import fingerprint_model
from trilens.encode.models import resolve_model
from trilens.store.config import DEFAULT_MODEL

AVERAGED = ("scifact", "nfcorpus", "vaswani", "cranfield", "cacm")
TUNED = "tuned fusion of five lenses"


def quality() -> str:
    """nDCG@10 of each system."""
    return by_dataset("nDCG@10")


def recall() -> str:
    """R@100 of each system."""
    return by_dataset("R@100")


def by_dataset(measure: str) -> str:
    """Systems by collections, and what the bundled model's dense vectors were made of."""
    found = of_bundled() | {(row["dataset"], f"dense of {row['model']}, float32 by torch"): row for row in rows("reference")}
    return systems_by_datasets(measure, {key: row[measure] for key, row in found.items()}, ".3f")


def tuned() -> str:
    """How to search as the tuned fusion does."""
    fusions = {row["fusion"] for (_, system), row in of_bundled().items() if system == TUNED}
    if len(fusions) != 1:
        return f"*{len(fusions)} fusions are recorded as the tuned one.*"
    return f"To search by the {TUNED}, in a collection that has them: `trilens search … --fusion {fusions.pop()}`."


def systems_by_datasets(title: str, found: Mapping[tuple[str, str], float], style: str) -> str:
    """A line for each system, a column for each collection, and the mean of those that are averaged, if all are there."""
    present = {dataset for dataset, _ in found}
    datasets = [name for name in AVERAGED if name in present] + sorted(name for name in present if name not in AVERAGED)
    whole = [name for name in AVERAGED if name in present] == list(AVERAGED)
    lines = []
    for system in dict.fromkeys(system for name in datasets for dataset, system in found if dataset == name):
        values = {name: found[name, system] for name in datasets if (name, system) in found}
        cells = [format(values[name], style) if name in values else "" for name in datasets]
        if whole:
            averaged = [values[name] for name in AVERAGED if name in values]
            cells.insert(len(AVERAGED), format(mean(averaged), style) if len(averaged) == len(AVERAGED) else "")
        lines.append([system, *cells])
    header = [*datasets[: len(AVERAGED)], "mean", *datasets[len(AVERAGED) :]] if whole else datasets
    return markdown([title, *header], lines)


def of_bundled() -> dict[tuple[str, str], Row]:
    """The last row of the bundled model for each collection and system; of the model measured last if there is none."""
    recorded = list(rows("quality"))
    models = {row.get("model") for row in recorded}
    bundled = fingerprint_model(resolve_model(DEFAULT_MODEL))
    return of_model(bundled if bundled in models else recorded[-1].get("model"))


def of_model(fingerprint: str | None) -> dict[tuple[str, str], Row]:
    """The last row of a model for each collection and system."""
    return {(row["dataset"], row["system"]): row for row in rows("quality") if row.get("model") == fingerprint}


def precision() -> str:
    """What 8 bits cost: nDCG@10 of the bundled model minus that of the same weights in float32."""
    bundled = of_bundled()
    exact = {(row["dataset"], row["system"]): row for row in rows("quality") if row.get("precision") == "float32"}
    both = {key: bundled[key]["nDCG@10"] - exact[key]["nDCG@10"] for key in exact if key in bundled}
    return systems_by_datasets("nDCG@10, 8 bits − float32", both, "+.4f")


def significance() -> str:
    """The best fusion against each lens, over the queries of all averaged collections."""
    models = {row.get("model") for row in of_bundled().values()}
    found = [row for row in newest("significance", "model", "baseline").values() if row["model"] in models]
    lines = [
        [
            f"{row['system']} against {row['baseline']}",
            f"{row['queries']:,}",
            f"{row['difference']:+.4f}",
            f"{row['p_value']:.4f}",
        ]
        for row in found
    ]
    return markdown(["nDCG@10", "queries", "mean difference", "p"], lines)


def ablations() -> str:
    """nDCG@10 of each part on each collection."""
    found = newest("ablations", "dataset", "part", "variant")
    datasets, parts = (list(dict.fromkeys(key[at] for key in found)) for at in (0, 1))
    lines = [
        [f"{part}: {variant}", *_cells(found, datasets, part, variant)]
        for part, variant in sorted(dict.fromkeys(key[1:] for key in found), key=lambda key: parts.index(key[0]))
    ]
    return markdown(["nDCG@10", *datasets], lines)


def _cells(found: dict[tuple[str, ...], Row], datasets: Sequence[str], part: str, variant: str) -> list[str]:
    return [f"{found[key]['nDCG@10']:.3f}" if (key := (name, part, variant)) in found else "" for name in datasets]


def words() -> str:
    """The heaviest words of sentences: their own, and those that the model of the last row adds."""
    found = newest("words", "model", "sentence")
    last = list(found)[-1][0]
    lines = [
        [sentence, ", ".join(row["own"]), ", ".join(row["added"])] for (model, sentence), row in found.items() if model == last
    ]
    return markdown(["text", "own words", "added words"], lines)


def recipe_rows() -> list[Row]:
    """The newest run of every variant, variants beside their recipe."""
    order = list(VARIANTS)
    return sorted(newest("recipes", "variant").values(), key=lambda row: order.index(row["variant"]))


def recipes() -> str:
    """What each recipe learned: nDCG@10 on held-out questions before and after."""
    header = ["recipe", "head", "nDCG@10 before", "after", "steps", "minutes"]
    lines = []
    for row in recipe_rows():
        for name, after in row["after"].items():
            head, _, measure = name.partition(":")
            if measure == "nDCG@10":
                before = row["before"].get(name)
                numbers = ["" if before is None else f"{before:.3f}", f"{after:.3f}", f"{row['steps']:,}"]
                lines.append([row["variant"], head, *numbers, f"{row['seconds'] / 60:.0f}"])
    return markdown(header, lines)


def token_training() -> str:
    """Weights trained on retrieved tokens beside those trained by MaxSim and not at all, at few probes and exactly."""
    found = newest("token-training", "trained_by", "probes")
    probes = list(dict.fromkeys(key[1] for key in found))
    lines = []
    for measure, label in (("Success@10", "Hit@10"), ("R@100", "R@100"), ("RR@10", "RR@10")):
        trained = dict.fromkeys(key[0] for key in found)
        lines += [[name, label, *(f"{found[name, count][measure]:.3f}" for count in probes)] for name in trained]
        tested = f"p of {measure} against "
        for key in (key for key in found["xtr", probes[0]] if key.startswith(tested)):
            values = [found["xtr", count][key] for count in probes]
            p_values = [f"{p:.3f}" if p >= 0.001 else "< 0.001" for p in values]
            lines.append([f"xtr against {key.removeprefix(tested)}", f"p, {label}", *p_values])
    names = {None: "exact", "few": "1, 2, 4, 8 probes", 1: "1 probe"}
    return markdown(["weights", "measure", *(names.get(count, f"{count} probes") for count in probes)], lines)

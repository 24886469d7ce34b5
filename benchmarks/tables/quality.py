"""Quality tables: lenses and fusions on judged collections, ablations, recipes and token training."""

from collections.abc import Mapping, Sequence
from statistics import mean

from benchmarks.judged import AVERAGED, DEFAULT_SEARCH, TUNED
from benchmarks.recipes import VARIANTS
from benchmarks.record import rows
from benchmarks.tables.markdown import Row, markdown, newest
from trilens.encode.folder import fingerprint_model
from trilens.encode.models import resolve_model
from trilens.store.config import DEFAULT_MODEL

# Systems of the short table of README.md.
MAIN_SYSTEMS = (
    "bm25",
    "dense",
    "sparse",
    "multi",
    "rrf of bm25 and dense",
    "rrf of bm25, dense and multi",
    TUNED,
    DEFAULT_SEARCH,
)


def quality() -> str:
    """nDCG@10 of each system."""
    return system_table("nDCG@10")


def quality_short() -> str:
    """nDCG@10 of the main systems on the averaged collections."""
    values = {key: row["nDCG@10"] for key, row in of_bundled().items() if key[0] in AVERAGED and key[1] in MAIN_SYSTEMS}
    return systems_by_datasets("nDCG@10", values, ".3f")


def recall() -> str:
    """R@100 of each system."""
    return system_table("R@100")


def system_table(measure: str) -> str:
    """Table of systems by collections, including the float32 checkpoint of the dense vectors."""
    reference = {(row["dataset"], f"dense of {row['model']}, float32 by torch"): row for row in rows("reference")}
    return systems_by_datasets(measure, {key: row[measure] for key, row in (of_bundled() | reference).items()}, ".3f")


def tuned() -> str:
    """How to search with the tuned fusion."""
    fusions = {row["fusion"] for (_, system), row in of_bundled().items() if system == TUNED}
    if len(fusions) != 1:
        return f"*{len(fusions)} different fusions are recorded as the tuned one.*"
    return f"To search with the {TUNED} in a collection that has them: `trilens search … --fusion {fusions.pop()}`."


def systems_by_datasets(title: str, values: Mapping[tuple[str, str], float], style: str) -> str:
    """Table with a row per system and a column per collection; a mean column if all averaged collections are present."""
    present = {dataset for dataset, _ in values}
    datasets = [name for name in AVERAGED if name in present] + sorted(name for name in present if name not in AVERAGED)
    complete = [name for name in AVERAGED if name in present] == list(AVERAGED)
    lines = []
    for system in dict.fromkeys(system for name in datasets for dataset, system in values if dataset == name):
        by_dataset = {name: values[name, system] for name in datasets if (name, system) in values}
        cells = [format(by_dataset[name], style) if name in by_dataset else "" for name in datasets]
        if complete:
            averaged = [by_dataset[name] for name in AVERAGED if name in by_dataset]
            cells.insert(len(AVERAGED), format(mean(averaged), style) if len(averaged) == len(AVERAGED) else "")
        lines.append([system, *cells])
    header = [*datasets[: len(AVERAGED)], "mean", *datasets[len(AVERAGED) :]] if complete else datasets
    return markdown([title, *header], lines)


def of_bundled() -> dict[tuple[str, str], Row]:
    """Last row of each collection and system for the bundled model; if it has no rows, for the last measured model."""
    recorded = list(rows("quality"))
    models = {row.get("model") for row in recorded}
    bundled = fingerprint_model(resolve_model(DEFAULT_MODEL))
    return of_model(bundled if bundled in models else recorded[-1].get("model"))


def of_model(fingerprint: str | None) -> dict[tuple[str, str], Row]:
    """Last row of each collection and system for a model."""
    return {(row["dataset"], row["system"]): row for row in rows("quality") if row.get("model") == fingerprint}


def precision() -> str:
    """Cost of quantisation: nDCG@10 of the bundled model minus that of the same weights in float32."""
    bundled = of_bundled()
    exact = {(row["dataset"], row["system"]): row for row in rows("quality") if row.get("precision") == "float32"}
    differences = {key: bundled[key]["nDCG@10"] - exact[key]["nDCG@10"] for key in exact if key in bundled}
    return systems_by_datasets("nDCG@10, int8 − float32", differences, "+.4f")


def significance() -> str:
    """Significance tests of the best fusion against each lens over the queries of the averaged collections."""
    models = {row.get("model") for row in of_bundled().values()}
    tests = [row for row in newest("significance", "model", "baseline").values() if row["model"] in models]
    lines = [
        [
            f"{row['system']} against {row['baseline']}",
            f"{row['queries']:,}",
            f"{row['difference']:+.4f}",
            f"{row['p_value']:.4f}",
        ]
        for row in tests
    ]
    return markdown(["nDCG@10", "queries", "mean difference", "p, Holm"], lines)


def ablations() -> str:
    """nDCG@10 of each ablation on each collection."""
    measured = newest("ablations", "dataset", "part", "variant")
    datasets, parts = (list(dict.fromkeys(key[field] for key in measured)) for field in (0, 1))
    lines = [
        [f"{part}: {variant}", *_cells(measured, datasets, part, variant)]
        for part, variant in sorted(dict.fromkeys(key[1:] for key in measured), key=lambda key: parts.index(key[0]))
    ]
    return markdown(["nDCG@10", *datasets], lines)


def _cells(measured: dict[tuple[str, ...], Row], datasets: Sequence[str], part: str, variant: str) -> list[str]:
    return [f"{measured[key]['nDCG@10']:.3f}" if (key := (name, part, variant)) in measured else "" for name in datasets]


def words() -> str:
    """Top terms of the sentences by the last measured model: terms of the text and expansion terms."""
    measured = newest("words", "model", "sentence")
    last = list(measured)[-1][0]
    lines = [
        [sentence, ", ".join(row["own"]), ", ".join(row["added"])]
        for (model, sentence), row in measured.items()
        if model == last
    ]
    return markdown(["text", "terms of the text", "expansion terms"], lines)


def recipe_rows() -> list[Row]:
    """Last run of every variant, in the order of VARIANTS."""
    order = list(VARIANTS)
    return sorted(newest("recipes", "variant").values(), key=lambda row: order.index(row["variant"]))


def recipes() -> str:
    """nDCG@10 on held-out questions before and after training, by recipe and head."""
    header = ["recipe", "head", "nDCG@10 before training", "after", "steps", "minutes"]
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
    """Weights trained by XTR, by MaxSim and not at all, by number of probes and with exact search."""
    measured = newest("token-training", "trained_by", "probes")
    probes = list(dict.fromkeys(key[1] for key in measured))
    lines = []
    for measure, label in (("Success@10", "Hit@10"), ("R@100", "R@100"), ("RR@10", "RR@10")):
        trained = dict.fromkeys(key[0] for key in measured)
        lines += [[name, label, *(f"{measured[name, count][measure]:.3f}" for count in probes)] for name in trained]
        prefix = f"p of {measure} against "
        for key in (key for key in measured["xtr", probes[0]] if key.startswith(prefix)):
            values = [measured["xtr", count][key] for count in probes]
            p_values = [f"{p:.3f}" if p >= 0.001 else "< 0.001" for p in values]
            lines.append([f"xtr against {key.removeprefix(prefix)}", f"p, {label}", *p_values])
    names = {None: "exact", "few": "1, 2, 4, 8 probes", 1: "1 probe"}
    return markdown(["weights", "measure", *(names.get(count, f"{count} probes") for count in probes)], lines)

"""Model card of a training run: provenance, training data and dev metrics."""

from pathlib import Path
from typing import TYPE_CHECKING

from trilens.train.recipe import Recipe

if TYPE_CHECKING:
    from trilens.train.run import TrainingResult


def write_card(recipe: Recipe, result: "TrainingResult", folder: Path) -> None:
    """Write README.md into the run folder and the model folder."""
    text = card(recipe, result)
    for place in (folder, Path(result.model)):
        (place / "README.md").write_text(text, encoding="utf-8")


def card(recipe: Recipe, result: "TrainingResult") -> str:
    """The model card in Markdown."""
    lines = [f"# {recipe.name}", ""]
    objectives = recipe.cross.objectives if recipe.cross else recipe.objectives
    if recipe.about:
        lines += [recipe.about.strip(), ""]
    facts = {
        "Initialised from": recipe.model.start + (f", first {recipe.model.layers} layers" if recipe.model.layers else ""),
        "Heads": ", ".join(recipe.model.heads) or "none: a cross-encoder",
        "Trained on": "; ".join(str(source.path) for source in recipe.data.sources),
        "Objectives": ", ".join(objective.kind for objective in objectives) or "RetroMAE",
        "Negatives": "per question " + ", ".join(f"{negatives.count} {negatives.source}" for negatives in recipe.negatives),
        "Steps": f"{result.steps} of at most {recipe.batch.size} questions"
        + (f"; best checkpoint at step {result.best_step}" if result.best_step else ""),
        "Seconds": f"{result.seconds:.0f}",
        "Licence": recipe.model.licence or "that of the backbone",
        "Source": recipe.model.source or recipe.model.start,
    }
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += ["", "Metrics on held-out questions:", "", "| | before | after |", "|---|---:|---:|"]
    lines += [f"| {name} | {value:.4f} | {result.after.get(name, float('nan')):.4f} |" for name, value in result.before.items()]
    lines += ["", "`recipe.yaml` is the complete recipe; `log.jsonl` has losses and dev metrics by step.", ""]
    return "\n".join(lines)

"""The card of a trained model: what it is, what it was trained on, and what was measured."""

from pathlib import Path
from typing import TYPE_CHECKING

from trilens.train.recipe import Recipe

if TYPE_CHECKING:
    from trilens.train.run import Result


def write_card(recipe: Recipe, result: "Result", folder: Path) -> None:
    """Write README.md into the run and beside the model."""
    text = card(recipe, result)
    for place in (folder, Path(result.model)):
        (place / "README.md").write_text(text, encoding="utf-8")


def card(recipe: Recipe, result: "Result") -> str:
    """Markdown."""
    about = [f"# {recipe.name}", ""]
    if recipe.about:
        about += [recipe.about.strip(), ""]
    facts = {
        "Begun from": recipe.model.start + (f", its first {recipe.model.layers} layers" if recipe.model.layers else ""),
        "Heads": ", ".join(recipe.model.heads),
        "Trained on": "; ".join(str(source.path) for source in recipe.data.sources),
        "Objectives": ", ".join(objective.kind for objective in recipe.objectives) or "RetroMAE",
        "Negatives": f"{recipe.negatives.count} per question, {recipe.negatives.source}",
        "Steps": f"{result.steps} of at most {recipe.batch.size} questions"
        + (f"; the best was {result.best_step}" if result.best_step else ""),
        "Seconds": f"{result.seconds:.0f}",
        "Licence": recipe.model.licence or "that of the backbone",
        "Source": recipe.model.source or recipe.model.start,
    }
    about += [f"- {name}: {value}" for name, value in facts.items()]
    about += ["", "Measured on questions that were held out of training:", "", "| | before | after |", "|---|---:|---:|"]
    about += [f"| {name} | {value:.4f} | {result.after.get(name, float('nan')):.4f} |" for name, value in result.before.items()]
    about += ["", "The recipe with all its settings is `recipe.yaml`; losses and measures by step are in `log.jsonl`.", ""]
    return "\n".join(about)

"""Learning curves of the recipes: loss and held-out nDCG@10 by step."""

from pathlib import Path

from benchmarks.record import RESULTS
from benchmarks.tables.markdown import Row
from benchmarks.tables.quality import recipe_rows

COLUMNS = 3


def draw() -> None:
    """Draw one panel per recipe; a variant has one colour, and its loss is faint."""
    by_recipe: dict[str, list[Row]] = {}
    for row in recipe_rows():
        if row.get("curve"):
            by_recipe.setdefault(row["recipe"], []).append(row)
    if by_recipe:
        _panels(by_recipe, RESULTS / "recipes.png")


def _panels(by_recipe: dict[str, list[Row]], path: Path) -> None:
    from matplotlib.figure import Figure

    panel_rows = -(-len(by_recipe) // COLUMNS)
    figure = Figure(figsize=(4.5 * COLUMNS, 4 * panel_rows), layout="constrained")
    panels = figure.subplots(panel_rows, COLUMNS, squeeze=False).flatten()
    for axes, (recipe, rows) in zip(panels, by_recipe.items(), strict=False):
        losses = axes.twinx()
        for number, row in enumerate(rows):
            colour = f"C{number}"
            for head, style in zip(row["curve"], ("-", "--", ":", "-."), strict=False):
                name = row["variant"] if len(row["curve"]) == 1 else f"{row['variant']}, {head}"
                axes.plot(*zip(*row["curve"][head], strict=True), style, marker=".", color=colour, label=name)
            losses.plot(*zip(*row["losses"], strict=True), color=colour, alpha=0.25)
        axes.set(title=recipe, xlabel="step", ylabel="nDCG@10, held out")
        losses.set_ylabel("loss (faint)")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.18))  # below the curves
    for axes in panels[len(by_recipe) :]:
        axes.set_visible(False)
    figure.savefig(path, dpi=110)

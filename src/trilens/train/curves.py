"""Training curves of a run as an image: losses above, dev metrics below."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from trilens.train.trainer import read_log

Curve = list[tuple[float, float]]
ACCURACY = "_accuracy"
LEFT_OUT = ("grad_norm", "learning_rate", "eval_loss", "seconds")


def curves_of(rows: Sequence[Mapping[str, float]]) -> tuple[dict[str, Curve], dict[str, Curve]]:
    """(step, value) curves of every loss, and of every in-batch accuracy and dev metric."""
    losses: dict[str, Curve] = defaultdict(list)
    measures: dict[str, Curve] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            if name.startswith("eval_") and ":" in name:
                measures[name.removeprefix("eval_")].append((row["step"], value))
            elif name.endswith(ACCURACY):
                measures[name].append((row["step"], value))
            elif name not in (*LEFT_OUT, "step") and not name.startswith("eval_"):
                losses[name].append((row["step"], value))
    return dict(losses), dict(measures)


def draw_curves(log: Path, file: Path, title: str) -> None:
    """Write the curves as a PNG."""
    from matplotlib.figure import Figure

    losses, measures = curves_of(read_log(log))
    shown = {name: curve for name, curve in measures.items() if name.endswith(("nDCG@10", "Hit@1", ACCURACY))}
    figure = Figure(figsize=(8, 7), layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    for axes, curves, label in ((above, losses, "loss"), (below, shown, "held-out questions; in-batch accuracy")):
        for name, curve in curves.items():
            axes.plot(*zip(*curve, strict=True), marker=".", label=name)
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        if curves:
            axes.legend(fontsize="small")
    above.set_title(title)
    below.set_xlabel("step")
    figure.savefig(file, dpi=120)

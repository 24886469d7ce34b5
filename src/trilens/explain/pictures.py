"""Pictures: word clouds and bar charts of weighted terms, and the parts of a score. Own terms are blue, added ones orange."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from trilens.errors import BadInput
from trilens.explain.explanation import Explanation
from trilens.explain.word import Word
from trilens.lenses.parts import Matrix, Part

OWN, ADDED, REST = "#1f5fa8", "#d9720b", "#999999"
MOST_BARS = 25
CLOUD_SIZE = (1200, 700)
LONGEST_TITLE = 80
INSTALL = "pictures need more packages: run `pip install 'trilens[pictures]'`"


def word_cloud(words: Sequence[Word], file: Path) -> None:
    """Draw the words, the heavier the larger; the same words give the same picture."""
    require_png(file)
    draw_cloud(words).to_file(str(file))


def show_cloud(words: Sequence[Word]) -> None:
    """Draw the words in the notebook or the window that matplotlib draws in."""
    cloud = draw_cloud(words)
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise BadInput(INSTALL) from error
    pyplot.imshow(cloud.to_array(), interpolation="bilinear")
    pyplot.axis("off")
    pyplot.show()


def draw_cloud(words: Sequence[Word]) -> Any:
    """A word cloud, which can be stored or shown."""
    try:
        from wordcloud import WordCloud
    except ImportError as error:
        raise BadInput(INSTALL) from error
    own = {word.word for word in words if word.own}

    def colour(word: str, **_: Any) -> str:
        return OWN if word in own else ADDED

    width, height = CLOUD_SIZE
    cloud = WordCloud(width=width, height=height, background_color="white", color_func=colour, random_state=1, margin=4)
    return cloud.generate_from_frequencies(_weights(words))


def bar_chart(words: Sequence[Word], file: Path, title: str = "") -> None:
    """Draw one bar per word, the heaviest on top."""
    require_png(file)
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError as error:
        raise BadInput(INSTALL) from error
    figure = Figure(figsize=(8, 1.2 + 0.24 * len(words)), layout="constrained")
    axes = figure.subplots()
    places = range(len(words))
    axes.barh(places, [word.weight for word in words], color=[OWN if word.own else ADDED for word in words])
    axes.set_yticks(places, [word.word.replace("$", r"\$") for word in words])
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.set(xlabel="weight", title=shorten(title, LONGEST_TITLE, placeholder=" …").replace("$", r"\$"))
    axes.legend(
        handles=[Patch(color=OWN, label="in the text"), Patch(color=ADDED, label="added by the model")], loc="lower right"
    )
    figure.savefig(file, dpi=120)


def explanation_picture(explanation: Explanation, file: Path) -> None:
    """Draw the parts of a score as bars and, where tokens were matched, their similarities as a heat map; a row per lens."""
    require_png(file)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput(INSTALL) from error
    panels = [explanation, *(explanation.children or ())]
    figure = Figure(figsize=(10, sum(_height(panel) for panel in panels)), layout="constrained")
    rows = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[_height(panel) for panel in panels])[:, 0]
    for axes, panel in zip(rows, panels, strict=True):
        if panel.matrix:
            _draw_matrix(figure, axes, panel.matrix)
        else:
            _draw_parts(axes, panel)
        note = ", approximate" if panel.approximate else ""
        axes.set_title(plain(f"{panel.lens}: {panel.score:.4f}{note}"))
    figure.suptitle(plain(f"{explanation.query} → {explanation.doc_id}"))
    figure.savefig(file, dpi=120)


def _height(panel: Explanation) -> float:
    rows = len(panel.matrix.query_tokens) + 3 if panel.matrix else min(len(panel.parts), MOST_BARS)
    return 1.2 + 0.24 * rows


def _draw_parts(axes: Any, panel: Explanation) -> None:
    parts = sorted(panel.parts, key=lambda part: -abs(part.score))[:MOST_BARS]
    axes.barh(range(len(parts)), [part.score for part in parts], color=[_part_colour(part) for part in parts])
    axes.set_yticks(range(len(parts)), [plain(part.label) for part in parts])
    axes.invert_yaxis()
    axes.axvline(0, color="#888888", linewidth=0.8)


def _draw_matrix(figure: Any, axes: Any, matrix: Matrix) -> None:
    image = axes.imshow(matrix.values, aspect="auto", cmap="Blues")
    axes.set_yticks(range(len(matrix.query_tokens)), [plain(token) for token in matrix.query_tokens])
    axes.set_xticks(range(len(matrix.doc_tokens)), [plain(token) for token in matrix.doc_tokens], rotation=90, fontsize=7)
    figure.colorbar(image, ax=axes, label="similarity × weight")


def _part_colour(part: Part) -> str:
    return REST if part.kind == "rest" else ADDED if part.kind in ("expanded", "imputed") else OWN


def plain(text: str) -> str:
    """One short line, in which a dollar sign starts no formula."""
    return shorten(text, LONGEST_TITLE, placeholder=" …").replace("$", r"\$")


def _weights(words: Sequence[Word]) -> dict[str, float]:
    """By word; two tokens that look alike count once, with the larger weight."""
    weights: dict[str, float] = {}
    for word in words:
        weights[word.word] = max(weights.get(word.word, 0.0), word.weight)
    return weights


def require_png(file: Path) -> None:
    """Refuse a file that no picture can go into."""
    if file.suffix.lower() != ".png":
        raise BadInput(f"picture {file} has the ending {file.suffix or 'none'}; expected .png")
    if not file.parent.is_dir():
        raise BadInput(f"there is no folder {file.parent} for the picture; make it first")

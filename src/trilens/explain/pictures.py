"""Pictures of weighted words: a cloud and a bar chart. Own words of the text are blue, those that the model adds are orange."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from trilens.errors import BadInput
from trilens.explain.disentangle import Word

OWN, ADDED = "#1f5fa8", "#d9720b"
CLOUD_SIZE = (1200, 700)
LONGEST_TITLE = 80
INSTALL = "pictures need more packages: run `pip install 'trilens[pictures]'`"


def word_cloud(words: Sequence[Word], file: Path) -> None:
    """Draw the words, the heavier the larger; the same words give the same picture."""
    _require_png(file)
    try:
        from wordcloud import WordCloud
    except ImportError as error:
        raise BadInput(INSTALL) from error
    own = {word.word for word in words if word.own}

    def colour(word: str, **_: Any) -> str:
        return OWN if word in own else ADDED

    width, height = CLOUD_SIZE
    cloud = WordCloud(width=width, height=height, background_color="white", color_func=colour, random_state=1, margin=4)
    cloud.generate_from_frequencies(_weights(words))
    cloud.to_file(str(file))


def bar_chart(words: Sequence[Word], file: Path, title: str = "") -> None:
    """Draw one bar per word, the heaviest on top."""
    _require_png(file)
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


def _weights(words: Sequence[Word]) -> dict[str, float]:
    """By word; two tokens that look alike count once, with the larger weight."""
    weights: dict[str, float] = {}
    for word in words:
        weights[word.word] = max(weights.get(word.word, 0.0), word.weight)
    return weights


def _require_png(file: Path) -> None:
    if file.suffix.lower() != ".png":
        raise BadInput(f"picture {file} has the ending {file.suffix or 'none'}; expected .png")
    if not file.parent.is_dir():
        raise BadInput(f"there is no folder {file.parent} for the picture; make it first")

"""What a text means to a model with a vocabulary head: the words that it activates, each with its weight."""

from dataclasses import dataclass

from trilens.encode.onnx import OnnxEncoder
from trilens.encode.reading import Side
from trilens.errors import BadInput, BadModel


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its weight; `own` tells whether the text holds it, or the model adds it."""

    word: str
    weight: float
    own: bool


def disentangle(encoder: OnnxEncoder, text: str, side: Side = "query", top: int | None = None) -> list[Word]:
    """The words of a text, heaviest first: all that its vector holds, or the best `top` of them."""
    if "sparse" not in encoder.heads:
        raise BadModel(f"model {encoder.folder.config.name} has no sparse head; expected a model with one")
    if not text.strip():
        raise BadInput("the text is empty; expected some words")
    encoded = encoder.encode_queries([text]) if side == "query" else encoder.encode_docs([text])
    vector, bag = encoded.sparse, encoded.bag
    assert vector is not None and bag is not None
    own = set(bag.terms.tolist())
    pairs = sorted(zip(vector.terms.tolist(), vector.weights.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
    kept = pairs[:top]
    words = encoder.term_texts([term for term, _ in kept])
    return [Word(word, weight, term in own) for word, (term, weight) in zip(words, kept, strict=True)]

"""`Word`: a vocabulary term that a text activates in a model."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """A vocabulary term and its weight; `own` if the text contains it, otherwise the model adds it."""

    word: str
    weight: float
    own: bool

"""What a collection is made of, chosen when it is created and kept in its catalog."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from trilens.encode.folder import Head, Weighing
from trilens.errors import BadInput
from trilens.index.bm25 import Bm25Config
from trilens.index.dense import DenseConfig
from trilens.index.multi import MultiConfig
from trilens.index.sparse import SparseConfig

# What each lens needs of the model. The token index needs its tokenizer for documents, and the head for queries.
HEADS: dict[str, Head | None] = {
    "bm25": None,
    "dense": "dense",
    "sparse": "sparse",
    "tokens": "sparse",
    "lexical": "lexical",
    "multi": "multi",
    "vectors": None,
}
LENSES = tuple(HEADS)
DEFAULT_LENSES = ("bm25", "dense")
DEFAULT_MODEL = "trilens-mini"


class PassageConfig(BaseModel):
    """Documents of more than `words` words are searched in passages of that length; 0 keeps every document whole.

    150 English words with their title fit into the 256 tokens that the bundled model reads.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    words: int = Field(default=150, ge=0)
    overlap: int = Field(default=30, ge=0)

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> "PassageConfig":
        if self.words and self.overlap >= self.words:
            raise ValueError(f"overlap is {self.overlap}; expected fewer than the {self.words} words of a passage")
        return self


class CollectionConfig(BaseModel):
    """Everything that decides what the segments hold. `model_fingerprint` ties the vectors to the weights that made them."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    lenses: tuple[str, ...] = DEFAULT_LENSES
    model: str = DEFAULT_MODEL
    model_fingerprint: str = ""
    weighing: Weighing = Weighing()  # that of the model
    bm25: Bm25Config = Bm25Config()
    dense: DenseConfig = DenseConfig()
    sparse: SparseConfig = SparseConfig()
    multi: MultiConfig = MultiConfig()
    passages: PassageConfig = PassageConfig()

    @field_validator("lenses")
    @classmethod
    def _known_lenses(cls, lenses: tuple[str, ...]) -> tuple[str, ...]:
        if not lenses or len(set(lenses)) != len(lenses) or not set(lenses) <= set(LENSES):
            raise ValueError(f"lenses are {', '.join(lenses) or 'none'}; expected one or more of {', '.join(LENSES)}")
        return lenses

    @model_validator(mode="after")
    def _vectors_stand_alone(self) -> "CollectionConfig":
        if "vectors" in self.lenses and (len(self.lenses) > 1 or self.passages.words):
            raise ValueError(
                f"lenses are {', '.join(self.lenses)} with passages of {self.passages.words} words; the documents of lens "
                "vectors are no texts: expected it alone, with passages of 0 words"
            )
        return self

    @property
    def heads(self) -> tuple[Head, ...]:
        """What the lenses need of the model; nothing if they need none."""
        return tuple(dict.fromkeys(head for lens in self.lenses if (head := HEADS[lens])))

    @staticmethod
    def of(**options: Any) -> "CollectionConfig":
        """A checked config; what is wrong is said in one line."""
        try:
            return CollectionConfig(**options)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            about = f"collection option {place}" if place else "collection options"
            raise BadInput(f"{about}: {first['msg'].removeprefix('Value error, ')}") from error

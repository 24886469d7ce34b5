"""Configuration and search parameters of the lenses over weighted terms."""

from typing import Annotated, Any, Literal

from pydantic import Field

from trilens.lenses.lens import LensConfig, LensParams

Count = Annotated[int, Field(strict=True, ge=1)]
Top = Annotated[int, Field(strict=True, ge=0)] | Literal["all"]


def require_terms(top: int | str | None, own: bool | None) -> None:
    """Refuse settings by which no weight is kept."""
    if top == 0 and own is False:
        raise ValueError("top is 0 and own is false, which keeps no weights; expected top above 0 or own=true")


class SparseConfig(LensConfig):
    """Stored weights of the lenses over terms. None takes the default of the model.

    weights     quantised to 8 bits with a scale per row, or stored as the model computes them; plain bags store none
    top         lens sparse: number of highest weights of a passage that are kept, or "all"
    own         lens sparse: whether the weights of the passage's own tokens are kept as well
    """

    weights: Literal["uint8", "float32"] = "uint8"
    top: Top | None = None
    own: Annotated[bool, Field(strict=True)] | None = None

    def model_post_init(self, _context: Any) -> None:
        """Refuse to keep nothing."""
        require_terms(self.top, self.own)


DEFAULT = SparseConfig()


class TermParams(LensParams):
    """Search parameters of a lens over weighted terms. None takes a default that grows with the collection.

    method      approximate, or exact: every row that could be among the best is scored
    terms       approximate: number of query terms that are read, heaviest first; shorter queries are answered exactly
    candidates  approximate: rows of each segment whose full score is computed
    """

    method: Literal["approximate", "exact"] = "approximate"
    terms: Count | None = None
    candidates: Count | None = None


DEFAULT_PARAMS = TermParams()


class IdfParams(TermParams):
    """Search parameters of a lens whose model asks for inverse document frequencies.

    idf         multiply query terms by their IDF in this collection, if the model's term weighting asks for it
    """

    idf: Annotated[bool, Field(strict=True)] = True

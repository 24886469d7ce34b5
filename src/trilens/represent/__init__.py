"""What encoders make and indexes search: `Dense`, `Sparse`, `Multi`, as a few arrays each."""

from trilens.represent.dense import Dense
from trilens.represent.multi import Multi
from trilens.represent.sparse import Sparse, saturated

__all__ = ["Dense", "Multi", "Sparse", "saturated"]

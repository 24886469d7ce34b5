"""The representations that encoders produce and indexes search: `Dense`, `Sparse` and `Multi`."""

from trilens.represent.dense import Dense
from trilens.represent.multi import Multi
from trilens.represent.sparse import Sparse, saturated

Representation = Dense | Sparse | Multi

__all__ = ["Dense", "Multi", "Representation", "Sparse", "saturated"]

"""Type aliases of numpy arrays, named after their dtype."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Int8s = NDArray[np.int8]
Int16s = NDArray[np.int16]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
UInt8s = NDArray[np.uint8]
UInt16s = NDArray[np.uint16]
UInt32s = NDArray[np.uint32]
UInt64s = NDArray[np.uint64]
Integers = NDArray[np.integer[Any]]
Unsigned = NDArray[np.unsignedinteger[Any]]
Mask = NDArray[np.bool_]
AnyArray = NDArray[Any]

"""Token vectors as codes: the nearest centroid, and what is left of the vector in 1, 2 or 4 bits per dimension.

    vector ≈ stretch · (centroid + size · steps · level)      level = levels[code], a whole number from -127 to 127

`steps` (dims,) is how far apart levels are in each dimension, `size` how large the residual of this token is, and `stretch`
brings the sum back to length 1 where the vectors had it (else all stretches are 1). Size and stretch are one byte per token
each, an index into `sizes` and `stretches` (256,). A token has w = dims · bits / 8 bytes of codes, a multiple of 16; byte i
holds the dimensions i, i + w, i + 2 w …, the first in its lowest bits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel
from trilens.kernels.lanes import decode_codes

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Centroids = NDArray[np.unsignedinteger[Any]]
Levels = NDArray[np.int8]


@kernel
def nearest_entry(table: Floats, value: float) -> int:
    """The index of the entry of an ascending table that is nearest to a value."""
    at = np.searchsorted(table, value)
    if at == len(table) or (at > 0 and value - table[at - 1] < table[at] - value):
        at -= 1
    return int(at)


@kernel
def encode_residuals(
    vectors: Floats,
    nearest: Centroids,
    centroids: Floats,
    spread: Floats,
    steps: Floats,
    sizes: Floats,
    stretches: Floats,
    cutoffs: Floats,
    levels: Levels,
    codes: Bytes,
    size_codes: Bytes,
    stretch_codes: Bytes,
    errors: Floats,
) -> None:
    """Fill the codes and the squared errors of some tokens. `codes` (tokens, bytes) is zero on entry.

    The size of a residual is its root mean square in units of `spread`; `cutoffs` lie between the levels of size 1.
    """
    dims, width = vectors.shape[1], codes.shape[1]
    bits = 8 * width // dims
    rest, made = np.empty(dims, np.float32), np.empty(dims, np.float32)
    for token in range(len(vectors)):
        centroid = centroids[nearest[token]]
        total = 0.0
        for d in range(dims):
            rest[d] = (vectors[token, d] - centroid[d]) / spread[d]
            total += rest[d] * rest[d]
        size_codes[token] = nearest_entry(sizes, np.sqrt(total / dims))
        size = sizes[size_codes[token]]
        length = 0.0
        for d in range(dims):
            code = 0
            for cutoff in cutoffs:
                code += rest[d] > cutoff * size
            codes[token, d % width] |= code << (d // width * bits)
            made[d] = centroid[d] + size * steps[d] * levels[code]
            length += made[d] * made[d]
        stretch_codes[token] = nearest_entry(stretches, 1 / np.sqrt(max(length, 1e-12)))
        stretch = stretches[stretch_codes[token]]
        error = 0.0
        for d in range(dims):
            error += (stretch * made[d] - vectors[token, d]) ** 2
        errors[token] = error


@kernel
def decode_tokens(
    nearest: Centroids,
    codes: Bytes,
    size_codes: Bytes,
    stretch_codes: Bytes,
    centroids: Floats,
    steps: Floats,
    sizes: Floats,
    stretches: Floats,
    levels: Levels,
    vectors: Floats,
) -> None:
    """The vectors (tokens, dims) that some codes stand for; `levels` has 16 entries, however few are used."""
    dims, width = vectors.shape[1], codes.shape[1]
    flat, flat_vectors = codes.reshape(-1), vectors.reshape(-1)
    for token in range(len(vectors)):
        stretch, centroid = stretches[stretch_codes[token]], centroids[nearest[token]]
        scale = stretch * sizes[size_codes[token]]
        place = (flat, token * width, width, 8 * width // dims, levels)
        decode_codes(*place, centroid, stretch, steps, scale, flat_vectors, token * dims)

"""Files of faiss IVF indexes, checked before faiss reads them: it trusts the sizes in a file."""

from pathlib import Path
from struct import pack
from typing import Any

import numpy as np

from trilens.errors import CollectionDamaged, shortage
from trilens.kernels.array_types import UInt8s
from trilens.represent.mapping import map_file

LISTS = slice(37, 45)  # the bytes with the number of lists
ADVICE = "run `trilens check` and restore it or index again"


def has_faiss() -> bool:
    """Whether faiss is installed."""
    try:
        import faiss  # noqa: F401
    except ImportError:
        return False
    return True


def write_ivf(index: Any, path: Path) -> None:
    """Write a faiss index through a file of Python's, whose errors say what the system lacks; those of faiss do not."""
    import faiss

    with path.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))  # type: ignore[attr-defined]  # not in its stubs


def open_ivf(path: Path, dim: int, rows: int) -> Any:
    """Memory-map the index of `rows` vectors that `write_ivf` wrote; None if faiss is not installed."""
    try:
        if not _is_whole(map_file(path), dim, rows):
            raise CollectionDamaged(f"{path} is not the whole faiss index of {rows} vectors of {dim} dimensions; {ADVICE}")
        if not has_faiss():
            return None
        import faiss

        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except OSError as error:
        raise shortage(path, error) or CollectionDamaged(f"{path} cannot be read ({error.strerror}); {ADVICE}") from error
    except RuntimeError as error:
        raise CollectionDamaged(f"{path} cannot be read by faiss; {ADVICE}") from error


def _is_whole(content: UInt8s, dim: int, rows: int) -> bool:
    """Whether all sizes fit together and add up to the file: an IVF index over 8-bit codes by inner product."""
    lists = int.from_bytes(content[LISTS].tobytes(), "little")
    if not 0 < lists <= len(content):
        return False
    layout = (
        (_header(b"IwSq", dim, rows) + pack("<QQ", lists, 1), 0),
        (_header(b"IxFI", dim, lists) + pack("<Q", lists * dim), 4 * lists * dim),  # centroids
        (pack("<BQiifQQQ", 0, 0, 0, 0, 0, dim, dim, 2 * dim), 4 * 2 * dim),  # no direct map; ranges of the codes
        (pack("<Q?4sQQ", dim, True, b"ilar", lists, dim), 0),
    )
    start = 0
    for known, skipped in layout:
        if content[start : start + len(known)].tobytes() != known:
            return False
        start += len(known) + skipped
    sizes, end = _list_sizes(content, start, lists)
    return bool((sizes <= rows).all()) and sizes.sum() == rows and end + rows * (dim + 8) == len(content)


def _header(kind: bytes, dim: int, vectors: int) -> bytes:
    return pack("<4siqqq?i", kind, dim, vectors, 1 << 20, 1 << 20, True, 0)


def _list_sizes(content: UInt8s, start: int, lists: int) -> tuple[np.ndarray[Any, Any], int]:
    """The sizes of the lists, of all or with their numbers of those that are not empty, and where they end; none if damaged."""
    form, count = content[start : start + 4].tobytes(), int.from_bytes(content[start + 4 : start + 12].tobytes(), "little")
    end = start + 12 + 8 * count
    nothing = np.zeros(1, np.uint64), -1
    if count > 2 * lists or end > len(content):
        return nothing
    numbers = np.frombuffer(content[start + 12 : end].tobytes(), np.uint64)
    if form == b"full" and count == lists:
        return numbers, end
    if form == b"sprs" and count % 2 == 0 and (numbers[::2] < lists).all():
        return numbers[1::2], end
    return nothing

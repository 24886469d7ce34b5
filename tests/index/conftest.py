from itertools import pairwise

import numpy as np
import pytest

from .token_index import DOCS, ROWS, TokenIndex, build, make_index


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> TokenIndex:
    """All rows in one part."""
    return make_index(tmp_path_factory.mktemp("index"))


@pytest.fixture(scope="session")
def in_parts(index: TokenIndex, tmp_path_factory: pytest.TempPathFactory) -> TokenIndex:
    """The same rows in five parts, one of them with a single row and one without tokens."""
    folder = tmp_path_factory.mktemp("parts")
    edges = [0, 13, 15, 16, 400, ROWS]
    parts = [build(DOCS.take(np.arange(start, end)), index.pages, folder / str(start)) for start, end in pairwise(edges)]
    return TokenIndex(parts, index.pages)

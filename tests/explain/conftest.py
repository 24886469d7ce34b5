from collections.abc import Iterator

import pytest

from trilens import Collection

from ..lenses.explained import make_collection


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """The texts of `explained` through every lens."""
    with make_collection(tmp_path_factory.mktemp("explain") / "c") as made:
        yield made

from collections.abc import Iterator

import pytest

from trilens import Collection

from ..index.conftest import index as index
from .explained import make_collection, make_documentation, make_terms


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """The texts of `explained` through every lens."""
    with make_collection(tmp_path_factory.mktemp("explained") / "c") as made:
        yield made


@pytest.fixture(scope="session")
def documentation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """Docstrings of Python's standard library through every lens."""
    with make_documentation(tmp_path_factory.mktemp("documentation") / "c") as made:
        yield made


@pytest.fixture(scope="session")
def terms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """Texts through the lenses over terms."""
    with make_terms(tmp_path_factory.mktemp("terms") / "c") as made:
        yield made

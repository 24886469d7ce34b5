import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from ..http.conftest import keys as keys
from ..http.conftest import made as made
from ..http.conftest import plain as plain
from ..http.conftest import service as service
from ..http.conftest import writable as writable

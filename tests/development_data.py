"""The folder of judged collections and training data that some tests read; they skip where it is absent."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("TRILENS_DATA", Path(__file__).parents[2] / "shared" / "data"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"there is no folder {DATA} (TRILENS_DATA names another)")

import json
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.read.notebook import read_notebook

DATA = Path(__file__).parent / "data"
OUTPUT = {"output_type": "stream", "text": "printed"}


def test_a_notebook_of_pandoc_is_read() -> None:
    title, text, metadata = read_notebook((DATA / "handbook.ipynb").read_text(encoding="utf-8"), "a")
    assert (title, metadata) == ("Centrifugal pumps", {})
    assert text.startswith("Centrifugal pumps\n\nCentrifugal pumps move water.")
    assert "naïve pipe:\nopen(valve)." in text


@pytest.mark.parametrize("version", [3, 4])
def test_code_is_read_without_outputs_in_both_versions(version: int) -> None:
    text = {"cell_type": "markdown", "source": ["# Head\n", "some *text*"]}
    code = {"cell_type": "code", "outputs": [OUTPUT], "source" if version == 4 else "input": ["x = 1\n", "x"]}
    cells = {"cells": [text, code]}
    notebook = cells if version == 4 else {"worksheets": [cells]}
    source = json.dumps({**notebook, "metadata": {"kernelspec": {"language": "python"}}})
    assert read_notebook(source, "a") == ("Head", "Head\nsome text\n\nx = 1\nx", {"language": "python"})


@pytest.mark.parametrize("source", ["", "{}", "[]", '{"cells": 1}', '{"cells": [{}]}', '{"cells": [[]]}', "[" * 100_000])
def test_other_json_is_an_error(source: str) -> None:
    with pytest.raises(BadInput, match=r"^a.ipynb is not a Jupyter notebook"):
        read_notebook(source, "a.ipynb")

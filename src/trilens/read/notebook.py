"""Extract the text of Jupyter notebooks: Markdown cells as plain text and code cells as they are, without outputs."""

import json
from collections.abc import Iterator
from typing import Any

from trilens.errors import BadInput
from trilens.read.described import described, one_line
from trilens.read.markdown import read_markdown


def read_notebook(source: str, where: str) -> tuple[str, str, dict[str, Any]]:
    """The title (of the metadata, or else the first heading), the text, and the metadata; `where` names the file in errors."""
    try:
        notebook = json.loads(source)
        cells = list(_cells(notebook))
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise BadInput(f"{where} is not a Jupyter notebook ({type(error).__name__}); expected its JSON: repair it") from error
    facts = notebook.get("metadata", {})
    title, texts = _string(facts, "title"), []
    for kind, text in cells:
        if kind == "code":
            texts.append(text)
        else:
            heading, plain, _ = read_markdown(text)
            title = title or heading
            texts.append(plain)
    language = _string(facts, "language_info", "name") or _string(facts, "kernelspec", "language")
    return one_line(title), "\n\n".join(filter(str.strip, texts)), described(language=language)


def _cells(notebook: Any) -> Iterator[tuple[str, str]]:
    """The kind and the source of each cell. Version 3 has sheets of cells, and headings as cells."""
    for sheet in notebook.get("worksheets", [notebook]):
        for cell in sheet["cells"]:
            kind = cell["cell_type"]
            source = cell["input"] if kind == "code" and "input" in cell else cell["source"]
            text = source if isinstance(source, str) else "".join(source)
            yield kind, "#" * int(cell["level"]) + " " + text if kind == "heading" else text


def _string(facts: Any, *names: str) -> str:
    """A string inside objects; empty if there is none."""
    for name in names:
        facts = facts.get(name) if isinstance(facts, dict) else None
    return facts if isinstance(facts, str) else ""

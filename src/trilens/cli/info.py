"""The command `info`."""

from typing import Any

from rich.table import Table
from rich.text import Text

from trilens.cli.options import CollectionPath, Json
from trilens.cli.render import megabytes, out, print_json
from trilens.collection import Collection


def info(path: CollectionPath, json: Json = False) -> None:
    """Show the content and size of a collection.

    Example:

      trilens info my.trilens --json
    """
    with Collection.open(path) as collection:
        facts = collection.info()
    if json:
        print_json(facts)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    sizes: dict[str, int] = facts["segment_bytes"]
    rows = {
        "documents": f"{facts['documents']:,}",
        "passages": f"{facts['passages']:,} ({facts['deleted_passages']:,} deleted, removed by optimize)",
        "lenses": ", ".join(facts["lenses"]),
        "model": facts["model"] or "none",
        "commits": f"{facts['commit']:,}",
        "segments": f"{facts['segments']:,}",
        "on disk": f"{megabytes(facts['catalog_bytes'])} catalog, "
        + ", ".join(f"{megabytes(size)} {name}" for name, size in sizes.items()),
    }
    for record in facts["tuned"].values():
        rows["tuned"] = "\n".join(filter(None, [rows.get("tuned"), _tuned(record)]))
    for lens, figures in facts["figures"].items():
        rows |= {f"{lens} {name.replace('_', ' ')}": _figure(value) for name, value in figures.items()}
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), Text(value))
    out().print(table)


def _tuned(record: dict[str, Any]) -> str:
    facts = (
        f"{record.get('measure')} {record.get('unseen')} on unseen queries of {record.get('dataset')}, {record.get('split')}"
    )
    return f"{record['fusion']} ({facts})"


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if isinstance(value, float) else str(value)

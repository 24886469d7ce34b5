"""Size, configuration and statistics of a collection, as `trilens info` shows them."""

from pathlib import Path
from typing import Any

from trilens.store.config import CollectionConfig
from trilens.store.lens_set import LensSet
from trilens.store.schema import FILE_NAME
from trilens.store.segment import DOCUMENTS, ROWS
from trilens.store.snapshot import Snapshot


def collection_info(path: Path, snapshot: Snapshot, lenses: LensSet, config: CollectionConfig) -> dict[str, Any]:
    """The collection at a path as one of its commits has it."""
    live = snapshot.live_rows
    return {
        "path": str(path),
        "documents": snapshot.documents_count,
        "passages": live,
        "lenses": lenses.names,
        "model": config.model if config.heads else None,
        "commit": snapshot.commit,
        "segments": len(snapshot.segments),
        "deleted_passages": snapshot.rows - live,
        "catalog_bytes": (path / FILE_NAME).stat().st_size,
        "segment_bytes": {
            name: sum(file.bytes for file in snapshot.files if file.path.startswith(f"{folder}/"))
            for name, folder in [
                *((name, name) for name in (DOCUMENTS, ROWS)),
                *((name, lenses.folder(name)) for name in lenses.names),
            ]
        },
        "tuned": snapshot.tuned,
        "figures": {name: values for name in lenses.names if (values := snapshot.figures(name))},
        "config": config.model_dump(mode="json", by_alias=True),
    }

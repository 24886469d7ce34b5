"""Opens the datasets that commands name, with a progress bar for downloads."""

from collections.abc import Iterator
from contextlib import contextmanager

from trilens.cli.progress import byte_progress
from trilens.datasets.beir_archives import BeirArchive, BytesDone
from trilens.datasets.dataset import Dataset
from trilens.datasets.layouts import open_dataset


def dataset_of(source: str) -> Dataset:
    """The dataset in a folder with a known layout, or a dataset to download, such as beir/scifact."""
    return open_dataset(source, downloading=downloading)


@contextmanager
def downloading(name: str, archive: BeirArchive) -> Iterator[BytesDone]:
    """A progress bar for the download of an archive."""
    with byte_progress(f"downloading {name}", archive.bytes) as advance:
        yield advance

"""The error of a missing framework: one line that names the extra to install."""

from collections.abc import Iterator
from contextlib import contextmanager

from trilens.errors import BadInput


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Imports of a framework in this block; the error of a missing one names the extra of trilens that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadInput(f"{error.name} is not installed; install it with `pip install 'trilens[{extra}]'`") from error

"""The error of a package that an extra installs and that is missing: one line that names the extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from trilens.errors import BadInput


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Imports in this block; the error of one that fails names the extra of trilens that installs the package."""
    try:
        yield
    except ImportError as error:
        package = (error.name or extra).partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError)
        problem = f"{package} is not installed" if missing else f"{package} cannot be used ({error})"
        raise BadInput(f"{problem}; install it with `pip install 'trilens[{extra}]'`") from error

"""The command line, as in the tests of commands."""

from tests.cli.conftest import trilens

__all__ = ["trilens"]

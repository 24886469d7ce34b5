"""The entry point of the command line. Results go to standard output, all messages to standard error.

Exit codes: 0 success, 1 failure with a one-line error message, 2 usage error, 130 and 143 interrupted by SIGINT and SIGTERM.
"""

import os
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from trilens import __version__
from trilens.cli.interrupts import Interrupted, interrupt_on_sigterm
from trilens.errors import TrilensError

app = typer.Typer(
    name="trilens",
    help="Text retrieval on an ordinary CPU: index, search, explain, evaluate, serve.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
MOST_DESCRIPTORS = 65_536
# Modules of `trilens.cli`, each with a function of the same name, in the order of the help.
COMMANDS = (
    "index",
    "search",
    "explain",
    "serve",
    "mcp",
    "get",
    "delete",
    "info",
    "check",
    "optimize",
    "upgrade",
    "backup",
    "restore",
    "dump",
    "load",
    "eval",
    "compare",
    "tune",
    "analyse",
    "disentangle",
    "mine",
    "train",
    "export",
    "models",
    "demo",
)


class Command(TyperCommand):
    """A command that refuses repeated options, of which all but the last would be dropped silently, and reports interrupts."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Check for repeated options, then parse."""
        _, _, options = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(options).items():
            if isinstance(option, TyperOption) and times > 1 and not (option.multiple or option.is_flag):
                name = option.opts[0]
                ctx.fail(f"{name} was given {times} times; expected it once: {name} {option.metavar or 'VALUE'}")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an interrupt becomes an error with a message."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(interrupt) from interrupt


for name in COMMANDS:
    app.command(name, cls=Command)(getattr(import_module(f"trilens.cli.{name}"), name))


def _version(requested: bool) -> None:
    if requested:
        sys.stdout.write(f"trilens {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Text retrieval on an ordinary CPU: index, search, explain, evaluate, serve.

    Start with `trilens demo`, or `trilens index FOLDER --to my.trilens` and `trilens search my.trilens "a question"`.
    """


def raise_descriptor_limit() -> None:
    """Let this process open as many files and connections as it is permitted: the default is a fraction of that."""
    with suppress(ImportError, OSError, ValueError):  # not on Windows
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main() -> None:
    """Run a command; a TrilensError is printed as one line."""
    debug = "--debug" in sys.argv[1:]
    interrupt_on_sigterm()
    raise_descriptor_limit()
    try:
        app()
    except TrilensError as error:
        if debug:
            raise
        sys.stderr.write(f"trilens: {error}\n")
        sys.exit(error.exit_code if isinstance(error, Interrupted) else 1)
    except MemoryError:
        if debug:
            raise
        sys.stderr.write("trilens: not enough memory; free memory or raise the limit with `ulimit -v`, and run it again\n")
        sys.exit(1)
    except BrokenPipeError:
        # The reader of standard output has closed it, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)

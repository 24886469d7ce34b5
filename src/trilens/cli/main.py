"""The entry point of the command line. Results go to standard output, all messages to standard error.

Exit codes: 0 success, 1 failure with a one-line error message, 2 usage error, 130 and 143 interrupted by SIGINT and SIGTERM.
"""

import ast
import os
import re
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from trilens import __version__
from trilens.cli.interrupts import Interrupted, interrupt_on_sigterm
from trilens.errors import TrilensError

MOST_DESCRIPTORS = 65_536
SETTINGS = {"help_option_names": ["-h", "--help"]}
# Panels of the help with their commands: modules of `trilens.cli`, each with a function of the same name. A module with
# SUBCOMMANDS is a group of these functions.
COMMANDS = {
    "Documents": ("index", "get", "delete", "dump", "load", "send", "embed"),
    "Search": ("search", "explain", "demo"),
    "Collections": ("info", "check", "optimize", "upgrade", "backup", "restore", "cluster"),
    "Models": ("models", "encode", "disentangle", "synthesize", "mine", "train", "export"),
    "Evaluation": ("eval", "compare", "tune", "analyse"),
    "Service": ("serve", "mcp", "doctor", "warmup"),
}


class WithoutTypes:
    """A command whose help has values by their metavars and flags without a value, not by types, which are those of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The arguments and options."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.param_type_name == "argument" or parameter.is_flag:
                parameter.display_type_rich = _no_type
        return parameters


class Command(WithoutTypes, TyperCommand):
    """A command that refuses repeated options, of which all but the last would be dropped silently."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        """Join the lines of each paragraph of the help, which may be wider than the terminal."""
        super().__init__(*arguments, **settings)
        self.help = re.sub(r"(?<=\S)\n(?=\S)", " ", self.help or "")

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line: metavars, in brackets if they may be left out. Versions of typer differ in what they add."""
        arguments = [parameter for parameter in self.get_params(ctx) if parameter.param_type_name == "argument"]
        return ["[OPTIONS]", *(str(given.metavar) if given.required else f"[{given.metavar}]" for given in arguments)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Check for repeated options, then parse."""
        _, _, options = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(options).items():
            if isinstance(option, TyperOption) and times > 1 and not (option.multiple or option.is_flag):
                name = option.opts[0]
                ctx.fail(f"{name} was given {times} times; expected it once: {name} {option.metavar or 'VALUE'}")
        return super().parse_args(ctx, args)


def _no_type(**_context: Any) -> None:
    """The type that typer shows beside a parameter: none."""


class Subcommands(WithoutTypes, TyperGroup):
    """A command that consists of others."""


class Commands(WithoutTypes, TyperGroup):
    """The commands by name. A command is imported when it is used; the help shows the first lines of their docstrings."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The entry of a command in the help; None if there is no such command."""
        entry = super().get_command(ctx, cmd_name)
        if entry is not None and not entry.help:
            entry.help = _summary(cmd_name)
        return entry

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that these arguments use."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_command(name), rest

    def invoke(self, ctx: Any) -> Any:
        """Import and run the command; an interrupt becomes an error with a message."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise Interrupted from interrupt


def _summary(name: str) -> str:
    """The first line of the docstring of a command, read without importing it."""
    module = ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    (function,) = (node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return (ast.get_docstring(function) or "").partition("\n")[0]


def load_command(name: str) -> Any:
    """Import a command, or a group of commands."""
    module = import_module(f"trilens.cli.{name}")
    subcommands = getattr(module, "SUBCOMMANDS", ())
    alone = typer.Typer(
        cls=Subcommands,
        no_args_is_help=bool(subcommands),
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings=SETTINGS,
    )
    if subcommands:
        alone.callback()(getattr(module, name))
    for function in subcommands or (getattr(module, name),):
        alone.command(function.__name__, cls=Command)(function)
    return typer.main.get_command(alone)


def _not_imported() -> None:  # without a docstring: the summary takes its place
    pass


app = typer.Typer(
    name="trilens",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)
for panel, names in COMMANDS.items():
    for name in names:
        app.command(name, rich_help_panel=panel)(_not_imported)


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

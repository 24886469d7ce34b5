"""The command line: `trilens COMMAND`. Results go to standard output, everything else to standard error.

Exit codes: 0 done, 1 it could not be done (one line says why), 2 the command was not understood.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from trilens import __version__
from trilens.errors import TrilensError
from trilens.serve import (
    collections,
    comparing,
    demo,
    evaluating,
    explaining,
    exporting,
    indexing,
    mining,
    models,
    searching,
    serving,
    tokens,
    training,
    tuning,
    words,
)

app = typer.Typer(
    name="trilens",
    help="Text retrieval on an ordinary CPU: index, search, evaluate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS: dict[str, Callable[..., None]] = {
    "index": indexing.index,
    "search": searching.search,
    "delete": collections.delete,
    "get": collections.get,
    "info": collections.info,
    "check": collections.check,
    "optimize": collections.optimize,
    "eval": evaluating.evaluate_command,
    "compare": comparing.compare_command,
    "tune": tuning.tune_command,
    "align": tokens.align_command,
    "analyse": tokens.analyse_command,
    "disentangle": words.disentangle_command,
    "explain": explaining.explain_command,
    "serve": serving.serve,
    "mine": mining.mine_command,
    "train": training.train_command,
    "export": exporting.export_command,
    "models": models.models_command,
    "demo": demo.demo,
}


class Command(TyperCommand):
    """A command that refuses an option given twice where one value counts: the first would be dropped without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Count the options, then go on as usual."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(given).items():
            if isinstance(option, TyperOption) and times > 1 and not (option.multiple or option.is_flag):
                name = option.opts[0]
                ctx.fail(f"{name} was given {times} times; expected it once: {name} {option.metavar or 'VALUE'}")
        return super().parse_args(ctx, args)


for name, command in COMMANDS.items():
    app.command(name, cls=Command)(command)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"trilens {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Text retrieval on an ordinary CPU: index, search, evaluate.

    Start with `trilens demo`, or `trilens index FOLDER --to my.trilens` and `trilens search my.trilens "a question"`.
    """


def main() -> None:
    """Run a command; errors of ours become one line."""
    debug = "--debug" in sys.argv[1:]
    try:
        app()
    except TrilensError as error:
        if debug:
            raise
        sys.stderr.write(f"trilens: {error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.stderr.write("trilens: stopped; what was committed is kept, and the same command continues from there\n")
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does: nothing left to say, and nothing to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)

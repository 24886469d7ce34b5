"""The command line: `trilens COMMAND`. Results go to standard output, everything else to standard error.

Exit codes: 0 done, 1 it could not be done (one line says why), 2 the command was not understood.
"""

import os
import sys
from typing import Annotated

import typer

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
app.command()(indexing.index)
app.command()(searching.search)
app.command()(collections.delete)
app.command()(collections.get)
app.command()(collections.info)
app.command()(collections.check)
app.command()(collections.optimize)
app.command("eval")(evaluating.evaluate_command)
app.command("compare")(comparing.compare_command)
app.command("tune")(tuning.tune_command)
app.command("align")(tokens.align_command)
app.command("analyse")(tokens.analyse_command)
app.command("disentangle")(words.disentangle_command)
app.command("explain")(explaining.explain_command)
app.command()(serving.serve)
app.command("mine")(mining.mine_command)
app.command("train")(training.train_command)
app.command("export")(exporting.export_command)
app.command("models")(models.models_command)
app.command()(demo.demo)


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

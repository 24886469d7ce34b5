"""Progress on standard error: bars in a terminal, elsewhere a plain line every few seconds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

LINE_SECONDS = 5.0  # between two lines where standard error is no terminal
COMPILING = "compiling kernel {}, once per installation"


class RateColumn(ProgressColumn):
    """Items per second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """The rate, or nothing while it is unknown."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {self._unit}/s" if speed else "", style="progress.data.speed")


class Work:
    """Work in progress: call it with the amount that was done, and `stage` with what is being done.

    Kernels that compile meanwhile are counted in `compiled` and shown as a stage.
    """

    def __init__(self, description: str) -> None:
        self.done = 0.0
        self.compiled = 0
        self.show: Callable[[], None] = lambda: None
        self._description, self._stage, self._compiling = description, "", False

    def __call__(self, amount: float) -> None:
        self.done += amount
        self.show()

    def stage(self, name: str) -> None:
        """Show what is being done."""
        self._stage = name
        self.show()

    def compiling(self, started: bool) -> None:
        """Show that a kernel compiles; other stages do not hide it."""
        self._compiling = started
        self.compiled += started
        self.show()

    def __str__(self) -> str:
        stage = COMPILING.format(self.compiled) if self._compiling else self._stage
        return f"{self._description}: {stage}" if stage else self._description


@contextmanager
def progress_bar(description: str, total: int | None, unit: str) -> Iterator[Work]:
    """The progress of work on items; without a total it shows a count."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with _running(columns, description, total, unit, 1) as work:
        yield work


@contextmanager
def byte_progress(description: str, total: int | None) -> Iterator[Work]:
    """The progress of work on bytes; without a total it shows a count."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with _running(columns, description, total, "MB", 1_000_000) as work:
        yield work


@contextmanager
def _running(
    columns: tuple[ProgressColumn, ...], description: str, total: int | None, unit: str, per_unit: int
) -> Iterator[Work]:
    from trilens.kernels.compile import watch_compilation  # deferred: numba takes a moment to import

    console, work = Console(stderr=True), Work(description)
    shown = _bar(work, columns, console, total) if console.is_terminal else _lines(work, total, unit, per_unit)
    with shown, watch_compilation(work.compiling):
        yield work


@contextmanager
def _bar(work: Work, columns: tuple[ProgressColumn, ...], console: Console, total: int | None) -> Iterator[None]:
    with Progress(*columns, console=console, transient=total is None) as progress:  # no bar without a total looks finished
        task = progress.add_task(str(work), total=total)
        work.show = lambda: progress.update(task, completed=int(work.done + 1e-6), description=str(work))
        yield


@contextmanager
def _lines(work: Work, total: int | None, unit: str, per_unit: int) -> Iterator[None]:
    """Lines at regular intervals, even while nothing is finished."""
    ended, begin = Event(), monotonic()
    of = "" if total is None else f" of {total // per_unit:,}"

    def write() -> None:
        while not ended.wait(LINE_SECONDS):
            done = int(work.done + 1e-6) // per_unit
            sys.stderr.write(f"{work}: {done:,}{of} {unit} in {monotonic() - begin:.0f} s\n")
            sys.stderr.flush()

    thread = Thread(target=write, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()

"""Progress bars on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

Advance = Callable[[float], None]


class RateColumn(ProgressColumn):
    """Items per second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """The rate, or nothing while it is unknown."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {self._unit}/s" if speed else "", style="progress.data.speed")


@contextmanager
def progress_bar(description: str, total: int | None, unit: str) -> Iterator[Advance]:
    """A progress bar over items; without a total it shows a count."""
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
    with _running(Progress(*columns, console=Console(stderr=True)), description, total) as advance:
        yield advance


@contextmanager
def byte_progress(description: str, total: int | None) -> Iterator[Advance]:
    """A progress bar over bytes; without a total it shows a count."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with _running(Progress(*columns, console=Console(stderr=True)), description, total) as advance:
        yield advance


@contextmanager
def _running(progress: Progress, description: str, total: int | None) -> Iterator[Advance]:
    # No progress bars in pipes and log files.
    progress.disable = not progress.console.is_terminal
    with progress:
        task = progress.add_task(description, total=total)
        done = 0.0

        def advance(amount: float) -> None:
            nonlocal done
            done += amount
            progress.update(task, completed=int(done + 1e-6))

        yield advance

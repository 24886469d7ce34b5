"""Progress where standard error is no terminal, and the announcement of kernels that compile."""

from collections.abc import Callable
from threading import Event

import pytest

from trilens.cli import progress
from trilens.cli.progress import Work, byte_progress, progress_bar
from trilens.kernels.compile import kernel


@pytest.fixture
def wait_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Waits until standard error contains a text; lines come at short intervals."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)

    def wait(expected: str) -> str:
        said = ""
        while expected not in said:
            Event().wait(0.01)
            said += capsys.readouterr().err
        return said

    return wait


def test_lines_say_what_is_done_and_what_is_being_done(wait_for: Callable[[str], str]) -> None:
    with progress_bar("indexing", 2000, "docs") as work:
        wait_for("indexing: 0 of 2,000 docs in 0 s\n")
        work.stage("encoding")
        work(1000.7)
        work(0.3)
        wait_for("indexing: encoding: 1,001 of 2,000 docs in ")
    with progress_bar("encoding", None, "docs") as work:
        work(3)
        wait_for("encoding: 3 docs in ")
    with byte_progress("copying", 5_000_000) as work:
        work(1_200_000)
        wait_for("copying: 1 of 5 MB in ")


def test_short_work_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("indexing", 2, "docs") as work:
        work(2)
    assert capsys.readouterr().err == ""


def test_kernels_that_compile_are_announced() -> None:
    def inner(number: float) -> float:
        return number + 1

    compiled_inner = kernel(inner)

    def outer(number: float) -> float:
        return 2 * compiled_inner(number)

    compiled_outer, shown = kernel(outer), list[str]()
    with progress_bar("indexing", 1, "docs") as work:
        work.stage("encoding")
        work.show = lambda: shown.append(str(work))
        assert compiled_outer(1) == 4
        assert compiled_outer(2) == 6
    assert shown == ["indexing: compiling kernel 1, once per installation", "indexing: encoding"]
    assert compiled_outer(1.5) == 5  # another signature, which nobody watches
    assert work.compiled == 1


def test_a_stage_during_a_compilation_shows_after_it() -> None:
    work = Work("indexing")
    work.compiling(True)
    work.stage("merging segments")
    assert str(work) == "indexing: compiling kernel 1, once per installation"
    work.compiling(False)
    assert str(work) == "indexing: merging segments"

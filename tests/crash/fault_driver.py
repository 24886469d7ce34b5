"""A process under the shim that imports and compiles everything once, then forks a child for each fault that the test orders.

A line of JSON on stdin orders a fault, a line of JSON on stdout says what came of it.
"""

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trilens.errors import CollectionDamaged, TrilensError

from . import shim
from .history import make_segments_small
from .operation import Operation, say_nothing
from .operations import OPERATIONS
from .shim import FAULTS, NEVER, Fault

SECONDS_TO_LIVE = 120

Said = dict[str, Any]
Tell = Callable[..., None]


def forked(act: Callable[[Tell], None]) -> tuple[Said, int]:
    """What a child process says (later values replace earlier ones), and its exit code."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS_TO_LIVE)  # a child that hangs must not hang the test

        def tell(**values: Any) -> None:
            os.write(writing, (json.dumps(values) + "\n").encode())

        try:
            act(tell)
        except BaseException:  # noqa: BLE001  the test wants to see every error
            shim.disarm()
            tell(problem=traceback.format_exc())
        os._exit(0)
    os.close(writing)
    said: Said = {}
    with os.fdopen(reading) as pipe:
        for line in pipe:
            said |= json.loads(line)
    _, status = os.waitpid(child, 0)
    return said, os.waitstatus_to_exitcode(status)


def attempt(operation: Operation, root: Path, fault: Fault, order: Said, tell: Tell) -> None:
    """Run an operation with a fault. After an error die, or run it again without the fault."""

    def say(state: int) -> None:
        tell(acknowledged=state)

    shim.arm(root, fault, order["number"])
    try:
        operation.run(root, say)
    except TrilensError as error:
        shim.disarm()
        tell(error=f"{type(error).__name__}: {error}")
        assert "\n" not in str(error), str(error)
        assert not (fault.is_shortage and isinstance(error, CollectionDamaged)), f"called damage: {error}"
        if order["die"]:
            os.kill(os.getpid(), signal.SIGKILL)
        operation.again(root, say)
    finally:
        shim.disarm()
        tell(happened=shim.happened())


def with_fault(template: Path, root: Path, order: Said) -> Said:
    """What comes of an operation with a fault on a copy of the prepared folder, while a reader is there."""
    operation, fault = OPERATIONS[order["operation"]], FAULTS[order["fault"]]
    shutil.copytree(template, root)
    with reading(operation, root, order["reader"]):
        said, code = forked(lambda tell: attempt(operation, root, fault, order, tell))
    outcome = "raised" if "error" in said else "killed" if code == -signal.SIGKILL else "done"
    if code and code != -signal.SIGKILL:
        said["problem"] = f"exit code {code}"
    verified, code = forked(lambda tell: operation.verify(root, said.get("acknowledged", 0)))
    if code:
        said["problem"] = f"exit code {code} of the process that verified"
    shutil.rmtree(root)
    return said | verified | {"outcome": outcome}


@contextmanager
def reading(operation: Operation, root: Path, wanted: bool) -> Iterator[None]:
    """Another process reads the collection meanwhile and is killed in the end."""
    if not wanted:
        yield
        return
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS_TO_LIVE)
        held = operation.read(root)
        os.write(writing, b"x")
        while held is not None:
            signal.pause()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read(1) == b"x"
    yield
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def log(template: Path, root: Path, order: Said) -> Said:
    """The calls of an operation that count for a fault, as name, tab and path below the folder."""
    operation, written = OPERATIONS[order["operation"]], root.with_suffix(".log")
    shutil.copytree(template, root)

    def act(tell: Tell) -> None:
        shim.log_calls(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        attempt(operation, root, FAULTS[order["fault"]], {"number": NEVER, "die": False}, tell)

    with reading(operation, root, order["reader"]):
        said, code = forked(act)
    assert code == 0
    shutil.rmtree(root)
    return said | {"log": written.read_text().splitlines()}


def prepared(folder: Path, name: str) -> Path:
    """The folder of an operation before it runs; operations with the same start share it."""
    template = folder / OPERATIONS[name].start
    if not template.exists():
        template.mkdir()
        OPERATIONS[name].prepare(template)
    return template


def warm_up(folder: Path) -> None:
    """Compile the kernels and import what is imported late."""
    root = folder / "warm"
    shutil.copytree(prepared(folder, "retrain"), root)
    OPERATIONS["retrain"].run(root, say_nothing)
    OPERATIONS["retrain"].verify(root, 1)
    shutil.rmtree(root)


def serve(folder: Path) -> None:
    """Answer each order."""
    make_segments_small()
    warm_up(folder)
    for line in sys.stdin:
        order = json.loads(line)
        answer = with_fault if "number" in order else log
        said = answer(prepared(folder, order["operation"]), folder / "work", order)
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

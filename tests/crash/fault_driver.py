"""A process under the shim that imports and compiles everything once, then forks a child for each fault that the test orders.

A line of JSON on stdin orders a fault, a line of JSON on stdout says what came of it.
"""

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trilens.errors import CollectionDamaged, TrilensError

from . import shim
from .driver import warm_up
from .history import make_segments_small
from .operations import OPERATIONS, Operation
from .shim import FAULTS, NEVER, Fault

SECONDS_TO_LIVE = 120
SHORTAGES = ("no space", "full disk", "short write", "one open file too many", "too many open files", "no memory", "memory exhausted")

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


def attempt(operation: Operation, root: Path, name: str, fault: Fault, number: int, tell: Tell) -> None:
    """Run an operation with a fault; after an error run it again without."""

    def say(state: int) -> None:
        tell(acknowledged=state)

    shim.arm(root, fault, number)
    try:
        operation.run(root, say)
    except TrilensError as error:
        shim.disarm()
        tell(error=f"{type(error).__name__}: {error}")
        assert "\n" not in str(error), str(error)
        assert not (name in SHORTAGES and isinstance(error, CollectionDamaged)), f"called damage: {error}"
        operation.again(root, say)
    finally:
        shim.disarm()
        tell(calls=shim.calls(), happened=shim.happened())


def with_fault(template: Path, root: Path, order: Said) -> Said:
    """What comes of an operation with a fault on a copy of the prepared folder."""
    operation, fault = OPERATIONS[order["operation"]], FAULTS[order["fault"]]
    shutil.copytree(template, root)
    said, code = forked(lambda tell: attempt(operation, root, order["fault"], fault, order["number"], tell))
    outcome = "killed" if code == -signal.SIGKILL else "raised" if "error" in said else "done"
    if code and outcome != "killed":
        said["problem"] = f"exit code {code}"
    verified, code = forked(lambda tell: operation.verify(root, said.get("acknowledged", 0)))
    if code:
        said["problem"] = f"exit code {code} of the process that verified"
    shutil.rmtree(root)
    return said | verified | {"outcome": outcome}


def serve(folder: Path) -> None:
    """Answer each order."""
    make_segments_small()
    warm_up()
    for line in sys.stdin:
        order = json.loads(line)
        template = folder / order["operation"]
        said: Said = {}
        if not template.exists():
            template.mkdir()
            said, _ = forked(lambda _, order=order, template=template: OPERATIONS[order["operation"]].prepare(template))  # type: ignore[misc]
        said = said or with_fault(template, folder / "work", {"number": NEVER} | order)
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

"""The child process that parses files: reads requests as JSON lines and answers with the documents of each file.

{"format": "pdf", "path": …, "seconds": …, "limits": {…}}   a request: the module of this package, the file, its deadline
{"value": …}                                                 a document or a record
{"end": null}, {"bad": [MESSAGE, REASON]}, {"damaged": MESSAGE}, {"missing": PACKAGE}
                                                             the last answer to a request; the process waits for the next one
{"failed": MESSAGE}                                          the last answer of a process that should be replaced

The deadline is an alarm without a handler. The kernel ends the process whatever it does, even if the parent is gone.
"""

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from trilens.errors import BadInput, Unreadable
from trilens.read.formats import PageContent
from trilens.read.isolated.local_file import LocalFile
from trilens.read.limits import MIB, ParsingLimits
from trilens.read.skipped import MALFORMED

LONGEST_REASON = 200


def main() -> None:
    """Answer requests until standard input ends."""
    answers = _claim_output()
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which may have to finish a commit
    _limit_memory(int(sys.argv[1]))
    for line in sys.stdin.buffer:
        _answer(json.loads(line), answers)


def _claim_output() -> IO[str]:
    """Standard output as a stream for answers; what libraries print afterwards is discarded."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return answers


def _limit_memory(memory_bytes: int) -> None:
    # Not every system has these limits: the parsers then run with the deadline alone, or on Windows without limits.
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _answer(request: dict[str, Any], answers: IO[str]) -> None:
    remaining_seconds = request["seconds"]
    file = LocalFile(Path(request["path"]), ParsingLimits(**request["limits"]))
    for answer in _answers(request["format"], file, remaining_seconds):
        # Waiting for the parent to read is not parsing.
        remaining_seconds = _set_alarm(0)
        answers.write(answer + "\n")
        answers.flush()
        _set_alarm(remaining_seconds)
    _set_alarm(0)


def _answers(format: str, file: LocalFile, seconds: float) -> Iterator[str]:
    _set_alarm(seconds)
    try:
        for value in import_module(f"{__package__}.{format}").parse(file):
            yield json.dumps({"value": _checked(value, file.limits)})
        yield json.dumps({"end": None})
    except BadInput as error:
        yield json.dumps({"bad": [str(error), error.reason if isinstance(error, Unreadable) else MALFORMED]})
    except ModuleNotFoundError as error:
        yield json.dumps({"missing": error.name})
    except MemoryError:
        yield json.dumps({"failed": f"needs more than {file.limits.memory_bytes // MIB:,} MiB of memory to parse"})
    except Exception as error:  # noqa: BLE001  a parser can raise anything about a damaged file
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
        yield json.dumps({"damaged": f"is damaged or of another format ({reason})"})


def _checked(value: Any, limits: ParsingLimits) -> Any:
    if not isinstance(value, PageContent):
        return value
    if len(value.text) > limits.text_bytes:
        raise BadInput(f"has more than {limits.text_bytes // MIB:,} MiB of text in one part")
    return dataclasses.asdict(value)


def _set_alarm(seconds: float) -> float:
    """Set the alarm, or clear it with 0. Returns the seconds that were left."""
    if not hasattr(signal, "setitimer"):
        return seconds
    return max(signal.setitimer(signal.ITIMER_REAL, seconds)[0], 1e-3)


if __name__ == "__main__":
    main()

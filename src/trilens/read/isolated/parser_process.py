"""`ParserProcess`: parses files in a child process, which a deadline and a limit on its memory protect from."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from trilens.errors import Unreadable
from trilens.read.decode import DAMAGED
from trilens.read.extra import INSTALL
from trilens.read.limits import LIMITS, MIB, ParsingLimits

ROOT = Path(__file__).parents[3]
"""The folder that holds the package, so that the child imports it from where the parent has."""
BEYOND_LIMITS = "damaged or beyond the limits"  # a reason for which files are skipped
ADVICE = "repair or convert the file, or leave it out"

# Thread pools and arenas reserve address space that the limit would count.
FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class ParserProcess:
    """A child process that parses one file after another. It starts with the first file and is replaced after a failure."""

    def __init__(self, limits: ParsingLimits = LIMITS) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "ParserProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the child process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def parse(self, format: str, path: Path, where: str) -> Generator[Any, None, None]:
        """Yield what the parser of `format`, a module of this package, yields for a file; `where` names it in errors."""
        finished = False
        try:
            for kind, value in self._answers(format, path):
                if kind == "value":
                    yield value
                    continue
                finished = kind != "failed"
                _raise_failure(kind, value, where)
                return
            raise Unreadable(f"{where} {self._cause_of_end(path)}; {ADVICE}", BEYOND_LIMITS)
        finally:
            if not finished:
                self.close()

    def _answers(self, format: str, path: Path) -> Iterator[tuple[str, Any]]:
        """The answers to a request; they end early if the process does."""
        request = {
            "format": format,
            "path": str(path.absolute()),
            "seconds": self._limits.deadline_seconds(path.stat().st_size),
            "limits": dataclasses.asdict(self._limits),
        }
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):  # the cause is found at the end of its answers
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        for line in process.stdout:
            ((kind, value),) = json.loads(line).items()
            yield kind, value

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            python_path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
            self._process = subprocess.Popen(
                # With -P, Python does not import modules from the current folder, which may be the one that is read.
                [sys.executable, "-P", "-m", f"{__package__}.child", str(self._limits.memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **FRUGAL, "PYTHONPATH": python_path},
            )
        return self._process

    def _cause_of_end(self, path: Path) -> str:
        """Why the process has ended, for an error."""
        assert self._process is not None
        code = self._process.wait()
        if -code == getattr(signal, "SIGALRM", None):
            return f"takes more than {self._limits.deadline_seconds(path.stat().st_size):.0f} s to parse"
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        memory = f"it may need more than {self._limits.memory_bytes // MIB:,} MiB of memory"
        return f"ends its parser ({cause}): it is damaged, or {memory}"


def _raise_failure(kind: str, value: Any, where: str) -> None:
    match kind:
        case "bad":
            message, reason = value
            raise Unreadable(f"{where} {message}", reason)
        case "missing":
            raise Unreadable(f"{where} needs packages that are not installed ({value}): {INSTALL}", f"not installed: {INSTALL}")
        case "damaged" | "failed":
            raise Unreadable(f"{where} {value}; {ADVICE}", DAMAGED if kind == "damaged" else BEYOND_LIMITS)

"""Faults at I/O calls: what they are, and how a process that runs under `shim.c` arms them."""

import ctypes
import errno
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
OPEN, CREATE, WRITE, SYNC, NAME, REMOVE, MAP, READ = (1 << bit for bit in range(8))
CHANGES = CREATE | WRITE | SYNC | NAME | REMOVE
KILL_BEFORE, KILL_AFTER, FAIL, SHORT = range(1, 5)
NEVER = 0  # no call has this number


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at a call; `kinds` are the calls that count, and `lasting` faults happen at all later ones as well."""

    action: int
    kinds: int
    error: int = 0
    lasting: bool = False

    @property
    def kills(self) -> bool:
        """Whether the process dies."""
        return self.action in (KILL_BEFORE, KILL_AFTER)

    @property
    def is_shortage(self) -> bool:
        """Whether something is used up, which must not be called damage."""
        return self.error in (errno.ENOSPC, errno.EMFILE, errno.ENOMEM)


KILLS = {"kill before": Fault(KILL_BEFORE, CHANGES), "kill after": Fault(KILL_AFTER, CHANGES)}
FAILURES = {
    "no space": Fault(FAIL, CREATE | WRITE | SYNC | NAME, errno.ENOSPC),
    "full disk": Fault(FAIL, CREATE | WRITE | NAME, errno.ENOSPC, lasting=True),
    "short write": Fault(SHORT, WRITE, errno.ENOSPC, lasting=True),
    "I/O error": Fault(FAIL, CHANGES | OPEN | READ, errno.EIO),
    "broken disk": Fault(FAIL, CHANGES | OPEN | READ, errno.EIO, lasting=True),
    "one open file too many": Fault(FAIL, OPEN | CREATE, errno.EMFILE),
    "too many open files": Fault(FAIL, OPEN | CREATE, errno.EMFILE, lasting=True),
    "no memory": Fault(FAIL, MAP | OPEN | CREATE, errno.ENOMEM),
    "memory exhausted": Fault(FAIL, MAP | OPEN | CREATE, errno.ENOMEM, lasting=True),
}
FAULTS = KILLS | FAILURES


def compile_shim(folder: Path) -> Path | None:
    """The library to preload; None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    library = folder / "shim.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


@cache
def _shim() -> ctypes.CDLL:
    """The preloaded library, in the process that runs under it."""
    library = ctypes.CDLL(None)
    library.fault_calls.restype = library.fault_happened.restype = ctypes.c_long
    library.fault_arm.argtypes = [ctypes.c_char_p, *[ctypes.c_int] * 3, ctypes.c_long, ctypes.c_int]
    return library


def arm(root: Path, fault: Fault, number: int) -> None:
    """Let a fault happen at the call of this number below a folder, counted from 1."""
    _shim().fault_arm(str(root).encode(), fault.action, fault.error, fault.kinds, number, fault.lasting)


def disarm() -> None:
    """No more faults."""
    _shim().fault_disarm()


def calls() -> int:
    """How many calls have counted since the arming."""
    return int(_shim().fault_calls())


def happened() -> int:
    """How many faults have happened since the arming."""
    return int(_shim().fault_happened())


def log_calls(descriptor: int) -> None:
    """Write a line for each call that counts: its name, a tab, and the path relative to the armed folder."""
    _shim().fault_log(descriptor)

"""The process that writes a backup, so that another one can tell whether it still runs."""

import os
import re
import secrets
import socket
import sys


def this_owner() -> str:
    """A name for a piece of work of this process; it has no character that file names cannot have."""
    host = re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}"


def has_died(owner: str) -> bool:
    """Whether the process is known to have ended; False for processes of other machines."""
    host, _, process = owner.rpartition("-")[0].rpartition("-")
    if sys.platform == "win32" or host != this_owner().split("-")[0] or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False

"""A process that backs up or restores: `python -m tests.store.backup.killed COLLECTION BACKUPS RESTORED`.

Each line of standard input orders one child and says after how many seconds it is killed. It is forked after all imports, so
that the time is spent on the work.
"""

import os
import signal
import sys
import time
from pathlib import Path

from trilens.collection import Collection


def run(order: str, root: Path, backups: Path, restored: Path) -> None:
    if order == "backup":
        Collection.open(root).backup(backups, keep=2)
    else:
        Collection.restore(backups, restored)


def serve(root: Path, backups: Path, restored: Path) -> None:
    """Say how each child ended."""
    for line in sys.stdin:
        order, seconds = line.split()
        child = os.fork()
        if not child:
            run(order, root, backups, restored)
            os._exit(0)
        time.sleep(float(seconds))
        os.kill(child, signal.SIGKILL)  # without effect on a child that has ended and is not waited for yet
        sys.stdout.write(f"{os.waitpid(child, 0)[1]}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(*map(Path, sys.argv[1:]))

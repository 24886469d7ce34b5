"""Ctrl-C and SIGTERM end a real `trilens index`: what was committed is kept, and the same command resumes."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trilens.collection import Collection

DOCUMENTS = 600


def line(number: int) -> bytes:
    return json.dumps({"id": str(number), "text": f"river number {number} with a fox"}).encode() + b"\n"


def listen_to_sigint() -> None:
    """In the child: a process that was started in the background of a shell ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_index_keeps_its_commits_and_resumes(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """The stream stops in the middle of a batch, so there are commits and a batch in hand when the signal comes."""
    source, target = tmp_path / "rows.jsonl", tmp_path / "c.trilens"
    source.write_bytes(b"".join(map(line, range(DOCUMENTS))))
    script = f"""
import sys, time
from trilens.cli import sync
from trilens.cli.main import main

ingest = sync.ingest

def stalling(documents):
    for number, document in enumerate(documents):
        if number == {DOCUMENTS - 1}:
            print("stalled", flush=True)
            time.sleep(60)
        yield document

sync.ingest = lambda to, settings, threads, documents, *others: ingest(to, settings, threads, stalling(documents), *others)
main()
"""
    command = ["index", str(source), "--to", str(target), "--lens", "bm25"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        [sys.executable, "-c", script, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        preexec_fn=listen_to_sigint,
    )
    try:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0]
        assert process.stdout.readline() == b"stalled\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    with Collection.open(target) as collection:
        kept = len(collection)
        assert collection.check().problems == []
    assert 0 < kept < DOCUMENTS
    message = f"trilens: interrupted; {kept:,} documents are kept in {target}, and the same command resumes\n"
    assert (process.returncode, errors.decode()) == (code, message)
    again = subprocess.run(
        [sys.executable, "-m", "trilens", *command, "--json"], capture_output=True, check=True, env=environment
    )
    answer = json.loads(again.stdout)
    assert (answer["unchanged"], answer["added"], answer["documents"]) == (kept, DOCUMENTS - kept, DOCUMENTS)

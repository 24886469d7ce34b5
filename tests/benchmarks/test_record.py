"""Recorded rows, written by a real process into a temporary folder."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.record import ROOT, file_hash, spread

SCRIPT = """
from benchmarks.record import missing, record, record_missing, rows
record("c", data="d", threads=2, seed=None, repeats=3, system="ours", ms_median=1.0)
record_missing("c", "peer", "no wheel")
assert missing("c") == {"peer": "no wheel"}
record("c", data="d", threads=2, seed=1, repeats=3, system="peer", ms_median=2.0)
assert missing("c") == {}
assert [row["system"] for row in rows("c")] == ["ours", "peer"]
assert list(rows("never run")) == []
"""


def test_a_row_has_commit_machine_threads_seed_data_and_repeats(tmp_path: Path) -> None:
    environment = {"TRILENS_RESULTS": str(tmp_path / "to"), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, check=True, capture_output=True)
    first = json.loads((tmp_path / "to" / "c.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert set(first) == {"at", "commit", "machine", "threads", "seed", "data", "repeats", "system", "ms_median"}
    assert (first["threads"], first["seed"], first["data"], first["repeats"]) == (2, None, "d", 3)


def test_hashes_differ_by_data_and_the_spread_is_by_hand(tmp_path: Path) -> None:
    for name, content in (("a", "x"), ("b", "y")):
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert file_hash(tmp_path / "a") != file_hash(tmp_path / "b")
    assert file_hash(tmp_path / "a", tmp_path / "b") != file_hash(tmp_path / "b", tmp_path / "a")
    assert spread("ms", [3.0, 1.0, 2.0]) == {"ms_median": 2.0, "ms_min": 1.0, "ms_max": 3.0}

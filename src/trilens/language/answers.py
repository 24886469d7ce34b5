"""Answers of language models, kept in a file of the user's cache, so that no question is asked twice."""

import sqlite3
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from trilens.language.model import LanguageModel, ask
from trilens.text.files import user_cache

MOST = 100_000  # answers; the oldest are forgotten
WAIT = 5.0  # seconds for another process that writes


def answers_file() -> Path:
    """The file of the answers."""
    return user_cache() / "answers.sqlite"


def ask_once(model: LanguageModel, prompt: str, max_tokens: int, patience: float = 0.0) -> str:
    """What the model writes, from the cache if it was asked before; empty answers are not kept.

    Without a cache that can be read and written, the model is asked.
    """
    key = blake2b("\0".join([model.address, model.model, str(max_tokens), prompt]).encode(), digest_size=16).digest()
    if (known := _read(key)) is not None:
        return known
    answer = ask(model, prompt, max_tokens, patience)
    if answer:
        _write(key, answer)
    return answer


def _read(key: bytes) -> str | None:
    file = answers_file()
    if not file.exists():
        return None
    try:
        with closing(sqlite3.connect(file, timeout=WAIT)) as database:
            row = database.execute("SELECT answer FROM answers WHERE key = ?", [key]).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def _write(key: bytes, answer: str) -> None:
    file = answers_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(file, timeout=WAIT)) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS answers (number INTEGER PRIMARY KEY, key BLOB UNIQUE, answer TEXT)")
            database.execute("INSERT OR REPLACE INTO answers (key, answer) VALUES (?, ?)", [key, answer])
            database.execute("DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?", [MOST])
    except (sqlite3.Error, OSError):
        return  # the answer is asked for again

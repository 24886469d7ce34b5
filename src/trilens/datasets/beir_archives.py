"""BEIR datasets by name: downloaded once, verified against the checksum BEIR publishes and unpacked into the user cache."""

import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from filelock import FileLock

from trilens.errors import BadInput, ServiceFailed
from trilens.text.files import layout_file, shown

ADDRESS = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
ADDRESS_VARIABLE = "TRILENS_BEIR_URL"
BLOCK_BYTES = 1 << 18
TIMEOUT_SECONDS = 30

BytesDone = Callable[[float], None]
"""Progress callback: number of bytes received since the last call."""


@dataclass(frozen=True, slots=True)
class BeirArchive:
    """Size and MD5 checksum of a zip file, as listed in BEIR's wiki."""

    md5: str
    bytes: int


ARCHIVES = {
    "arguana": BeirArchive("8ad3e3c2a5867cdced806d6503f29b99", 3_773_617),
    "climate-fever": BeirArchive("8b66f0a9126c521bae2bde127b4dc99d", 1_228_666_652),
    "cqadupstack": BeirArchive("4e41456d7df8ee7760a7f866133bda78", 5_343_728_040),
    "dbpedia-entity": BeirArchive("c2a39eb420a3164af735795df012ac2c", 639_285_131),
    "fever": BeirArchive("5a818580227bfb4b35bb6fa46d9b6c03", 1_236_988_269),
    "fiqa": BeirArchive("17918ed23cd04fb15047f73e6c3bd9d9", 17_948_027),
    "hotpotqa": BeirArchive("f412724f78b0d91183a0e86805e16114", 654_025_350),
    "msmarco": BeirArchive("444067daf65d982533ea17ebd59501e4", 1_082_258_632),
    "nfcorpus": BeirArchive("a89dba18a62ef92f7d323ec890a0d38d", 2_448_432),
    "nq": BeirArchive("d4d3d2e48787a744b6f6e691ff534307", 498_307_926),
    "quora": BeirArchive("18fb154900ba42a600f84b839c173167", 15_853_968),
    "scidocs": BeirArchive("38121350fc3a4d2f48850f6aff52e4a9", 142_471_588),
    "scifact": BeirArchive("5f7d1de60b170fc8027bb7898e2efca1", 2_816_079),
    "trec-covid": BeirArchive("ce62140cb23feb9becf6270d0d1fe6d1", 73_876_720),
    "webis-touche2020": BeirArchive("46f650ba5a527fc69e0a6521c5a23563", 227_132_363),
}


def require_archive(name: str) -> BeirArchive:
    """Look up the archive of a BEIR dataset; unknown names are refused."""
    if name not in ARCHIVES:
        raise BadInput(
            f"there is no BEIR dataset {name!r} to download; expected one of {', '.join(sorted(ARCHIVES))}, or a folder"
        )
    return ARCHIVES[name]


def beir_folder(name: str, archive: BeirArchive, cache: Path, report: BytesDone = lambda count: None) -> Path:
    """Return the folder of a dataset in the cache; download and unpack it if it is absent.

    A dataset folder appears in the cache only once it is complete. A file lock serialises concurrent downloads.
    """
    folder = cache / name
    if folder.is_dir():
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{name}.lock"):
            if not folder.is_dir():
                zip_path = cache / f"{name}.zip"
                if not zip_path.is_file():
                    fetch(archive_url(name), zip_path, archive.md5, report)
                unpack(zip_path, name, folder)
                zip_path.unlink()
    except OSError as error:
        raise BadInput(
            f"{shown(cache)} cannot be written ({error.strerror or error}); set XDG_CACHE_HOME to another folder"
        ) from error
    return folder


def archive_url(name: str) -> str:
    """URL of the zip file of a dataset; the environment variable TRILENS_BEIR_URL selects a mirror."""
    return f"{os.environ.get(ADDRESS_VARIABLE, ADDRESS).rstrip('/')}/{name}.zip"


def fetch(url: str, path: Path, md5: str, report: BytesDone) -> None:
    """Download a file and verify its checksum. An interrupted download stays in `path`.part and is resumed from there."""
    part = path.with_name(f"{path.name}.part")
    received = part.stat().st_size if part.is_file() else 0
    headers = {"User-Agent": "trilens", **({"Range": f"bytes={received}-"} if received else {})}
    try:
        with urlopen(Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:
            resumed = received > 0 and response.status == 206
            report(received if resumed else 0)
            with part.open("ab" if resumed else "wb") as file:
                _copy(response, file, url, report)
    except HTTPError as error:
        if error.code != 416:  # range not satisfiable: the file may be complete already, which the checksum verifies
            raise ServiceFailed(f"{url} answered {error.code} {error.reason}; {_manual_download(url)}") from error
    except (URLError, HTTPException, ConnectionError, TimeoutError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ServiceFailed(f"{url} cannot be reached ({reason}); {_manual_download(url)}") from error
    _require_checksum(part, url, md5)
    part.replace(path)


def _copy(response: Any, file: IO[bytes], url: str, report: BytesDone) -> None:
    """Write the response body to a file; fail if it is shorter than its Content-Length."""
    remaining = int(response.headers.get("Content-Length") or -1)
    try:
        while block := response.read(BLOCK_BYTES):
            file.write(block)
            remaining -= len(block) if remaining > 0 else 0
            report(len(block))
    except (HTTPException, ConnectionError, TimeoutError) as error:
        raise ServiceFailed(_interrupted(url, file)) from error
    if remaining > 0:
        raise ServiceFailed(_interrupted(url, file))


def _interrupted(url: str, file: IO[bytes]) -> str:
    return f"the download of {url} was interrupted after {file.tell():,} bytes; run the same command again to resume it"


def _manual_download(url: str) -> str:
    return f"download {url} on a machine with network access, unpack it, and pass its folder instead of the name"


def _require_checksum(part: Path, url: str, md5: str) -> None:
    with part.open("rb") as file:
        actual = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if actual != md5:
        part.unlink()
        raise BadInput(
            f"{url} has the MD5 checksum {actual}; expected {md5}, as published by BEIR: the download was deleted; try again, "
            "or pass a folder that you trust"
        )


def unpack(zip_path: Path, name: str, folder: Path) -> None:
    """Unpack an archive's folder `name` to `folder`, which appears by an atomic rename once everything is extracted."""
    unpacking = folder.with_name(f"{folder.name}.unpacking")
    shutil.rmtree(unpacking, ignore_errors=True)
    try:
        with zipfile.ZipFile(zip_path) as archive:
            for member in archive.infolist():
                _require_inside(member.filename, zip_path)
            archive.extractall(unpacking)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise BadInput(f"{shown(zip_path)} is not a readable zip file ({error}); delete it and try again") from error
    dataset = unpacking / name
    if not any(layout_file(directory, "corpus.jsonl") for directory in (dataset, *dataset.glob("*"))):
        shutil.rmtree(unpacking, ignore_errors=True)
        raise BadInput(f"{shown(zip_path)} has no {name}/corpus.jsonl; expected a dataset in the BEIR layout")
    dataset.rename(folder)
    shutil.rmtree(unpacking, ignore_errors=True)


def _require_inside(member: str, zip_path: Path) -> None:
    """Refuse archive members whose path escapes the target folder."""
    path = PurePosixPath(member.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise BadInput(
            f"{shown(zip_path)} has a member {member[:80]!r} outside its folder; expected only relative paths: do not trust it"
        )

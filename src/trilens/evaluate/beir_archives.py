"""BEIR's datasets by name: fetched once, verified by the checksum that BEIR publishes, unpacked into the user's cache."""

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


@dataclass(frozen=True, slots=True)
class Archive:
    """`md5` is of the zip file, as the list of datasets in BEIR's wiki has it."""

    md5: str
    bytes: int


ARCHIVES = {
    "arguana": Archive("8ad3e3c2a5867cdced806d6503f29b99", 3_773_617),
    "climate-fever": Archive("8b66f0a9126c521bae2bde127b4dc99d", 1_228_666_652),
    "cqadupstack": Archive("4e41456d7df8ee7760a7f866133bda78", 5_343_728_040),
    "dbpedia-entity": Archive("c2a39eb420a3164af735795df012ac2c", 639_285_131),
    "fever": Archive("5a818580227bfb4b35bb6fa46d9b6c03", 1_236_988_269),
    "fiqa": Archive("17918ed23cd04fb15047f73e6c3bd9d9", 17_948_027),
    "hotpotqa": Archive("f412724f78b0d91183a0e86805e16114", 654_025_350),
    "msmarco": Archive("444067daf65d982533ea17ebd59501e4", 1_082_258_632),
    "nfcorpus": Archive("a89dba18a62ef92f7d323ec890a0d38d", 2_448_432),
    "nq": Archive("d4d3d2e48787a744b6f6e691ff534307", 498_307_926),
    "quora": Archive("18fb154900ba42a600f84b839c173167", 15_853_968),
    "scidocs": Archive("38121350fc3a4d2f48850f6aff52e4a9", 142_471_588),
    "scifact": Archive("5f7d1de60b170fc8027bb7898e2efca1", 2_816_079),
    "trec-covid": Archive("ce62140cb23feb9becf6270d0d1fe6d1", 73_876_720),
    "webis-touche2020": Archive("46f650ba5a527fc69e0a6521c5a23563", 227_132_363),
}


def require_known(name: str) -> Archive:
    """The archive of a name."""
    if name not in ARCHIVES:
        raise BadInput(
            f"there is no BEIR dataset {name!r} to download; expected one of {', '.join(sorted(ARCHIVES))}, or a folder"
        )
    return ARCHIVES[name]


def beir_folder(name: str, archive: Archive, cache: Path, report: BytesDone = lambda count: None) -> Path:
    """The folder of a dataset in the cache; it is fetched and unpacked if it is not there. A folder in the cache is whole."""
    folder = cache / name
    if folder.is_dir():
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{name}.lock"):
            if not folder.is_dir():
                zipped = cache / f"{name}.zip"
                if not zipped.is_file():
                    fetch(address_of(name), zipped, archive.md5, report)
                unpack(zipped, name, folder)
                zipped.unlink()
    except OSError as error:
        raise BadInput(
            f"{shown(cache)} cannot be written ({error.strerror or error}); set XDG_CACHE_HOME to another folder"
        ) from error
    return folder


def address_of(name: str) -> str:
    """Where the zip file of a dataset is; TRILENS_BEIR_URL names a mirror."""
    return f"{os.environ.get(ADDRESS_VARIABLE, ADDRESS).rstrip('/')}/{name}.zip"


def fetch(url: str, path: Path, md5: str, report: BytesDone) -> None:
    """Download a file. What came before a break stays in `path`.part, and the next attempt goes on from there."""
    part = path.with_name(f"{path.name}.part")
    done = part.stat().st_size if part.is_file() else 0
    headers = {"User-Agent": "trilens", **({"Range": f"bytes={done}-"} if done else {})}
    try:
        with urlopen(Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:
            resumed = done > 0 and response.status == 206
            report(done if resumed else 0)
            with part.open("ab" if resumed else "wb") as file:
                _copy(response, file, url, report)
    except HTTPError as error:
        if error.code != 416:  # there is nothing after what we have: the checksum tells whether it is all
            raise ServiceFailed(f"{url} answered {error.code} {error.reason}; {_by_hand(url)}") from error
    except (URLError, HTTPException, ConnectionError, TimeoutError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ServiceFailed(f"{url} cannot be reached ({reason}); {_by_hand(url)}") from error
    _require_checksum(part, url, md5)
    part.replace(path)


def _copy(response: Any, file: IO[bytes], url: str, report: BytesDone) -> None:
    """Everything that the answer promised, or an error."""
    left = int(response.headers.get("Content-Length") or -1)
    try:
        while block := response.read(BLOCK_BYTES):
            file.write(block)
            left -= len(block) if left > 0 else 0
            report(len(block))
    except (HTTPException, ConnectionError, TimeoutError) as error:
        raise ServiceFailed(_broken_off(url, file)) from error
    if left > 0:
        raise ServiceFailed(_broken_off(url, file))


def _broken_off(url: str, file: IO[bytes]) -> str:
    return f"the download of {url} broke off after {file.tell():,} bytes; the same command goes on from there"


def _by_hand(url: str) -> str:
    return f"download it where there is a network, unpack it, and give its folder instead of the name ({url})"


def _require_checksum(part: Path, url: str, md5: str) -> None:
    with part.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != md5:
        part.unlink()
        raise BadInput(
            f"{url} has the md5 checksum {found}; expected {md5}, as BEIR publishes it: nothing was kept, try again, "
            "or give a folder that you trust"
        )


def unpack(zipped: Path, name: str, folder: Path) -> None:
    """The archive's folder `name` becomes `folder` at once, when all of it is there."""
    unpacking = folder.with_name(f"{folder.name}.unpacking")
    shutil.rmtree(unpacking, ignore_errors=True)
    try:
        with zipfile.ZipFile(zipped) as archive:
            for member in archive.infolist():
                _require_inside(member.filename, zipped)
            archive.extractall(unpacking)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise BadInput(f"{shown(zipped)} is not a zip file that can be read ({error}); remove it and try again") from error
    found = unpacking / name
    if not any(layout_file(place, "corpus.jsonl") for place in (found, *found.glob("*"))):
        shutil.rmtree(unpacking, ignore_errors=True)
        raise BadInput(f"{shown(zipped)} has no {name}/corpus.jsonl; expected a dataset in the BEIR layout")
    found.rename(folder)
    shutil.rmtree(unpacking, ignore_errors=True)


def _require_inside(member: str, zipped: Path) -> None:
    path = PurePosixPath(member.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise BadInput(
            f"{shown(zipped)} has a member {member[:80]!r} that would lie outside its folder; expected none: do not trust it"
        )

"""Models of the Hugging Face hub by id: downloads through huggingface_hub and its cache, and model folders made of them.

huggingface_hub reads HF_HOME, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE. A checkpoint is exported once, into a folder of the
user's cache that is named after its id, its commit and the precision; later uses of the id need no network.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from trilens.encode.folder import CONFIG_FILE
from trilens.errors import BadModel
from trilens.text.files import user_cache

PRECISION = "int8"
NAME = re.compile(r"(?:(?P<owner>[A-Za-z0-9][\w.-]*)/)?(?P<model>[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w./-]+))?")
# Other formats of the same weights, not worth downloading.
NOT_NEEDED = ["*.onnx", "*.onnx_data", "onnx/*", "openvino/*", "coreml/*", "*.h5", "*.msgpack", "*.ot", "*.gguf"]


class HubId(NamedTuple):
    """A repository of the hub, and its branch, tag or commit; None: the default branch."""

    repository: str
    revision: str | None

    @property
    def folder(self) -> str:
        """The repository as the name of a folder."""
        return self.repository.replace("/", "--")


def parse_hub_id(name: str) -> HubId | None:
    """The hub id `owner/model@revision`, whose owner and revision may be missing; None for what only a path can be."""
    if (found := NAME.fullmatch(name)) is None:
        return None
    owner, model, revision = found.group("owner", "model", "revision")
    return HubId(f"{owner}/{model}" if owner else model, revision)


def is_hub_id(name: str) -> bool:
    """Whether a model name can be a hub id, `owner/model`, and is not an existing folder."""
    found = parse_hub_id(name)
    return found is not None and "/" in found.repository and not Path(name).exists()


def find_model(source: str) -> Path:
    """The folder or file of a checkpoint, given as a path or as a hub id."""
    path = Path(source).expanduser()
    if path.exists() or parse_hub_id(source) is None:
        return path
    return download(source)


def download(name: str) -> Path:
    """The folder of a hub id in huggingface_hub's cache, named after its commit; what is missing is downloaded."""
    found = parse_hub_id(name)
    assert found is not None
    with clear_errors(name), silent_downloads():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(found.repository, revision=found.revision, allow_patterns=["*.json"]))
        ignored = [] if (folder / CONFIG_FILE).is_file() else NOT_NEEDED
        return Path(snapshot_download(found.repository, revision=found.revision, ignore_patterns=ignored))


def hub_model(name: str, precision: str = PRECISION) -> Path:
    """The model folder of a hub id: the repository itself if it is one, otherwise its export, made at the first use."""
    found = parse_hub_id(name)
    assert found is not None
    if known := exported(found, precision):
        return known
    checkpoint = download(name)
    if (checkpoint / CONFIG_FILE).is_file():
        return checkpoint
    target = exports() / found.folder / f"{checkpoint.name}-{precision}" / found.repository.rsplit("/", 1)[-1]
    if not (target / CONFIG_FILE).is_file():
        run_export([f"{found.repository}@{checkpoint.name}", str(target), "--precision", precision])
    return target


def exported(name: HubId, precision: str) -> Path | None:
    """The last export of an id, without asking the hub; revisions are known by their commits only."""
    folders = (file.parent for file in (exports() / name.folder).glob(f"*-{precision}/*/{CONFIG_FILE}"))
    fitting = [folder for folder in folders if name.revision is None or folder.parent.name == f"{name.revision}-{precision}"]
    return max(fitting, key=lambda folder: folder.stat().st_mtime, default=None)


def is_from(path: Path, name: str) -> bool:
    """Whether a model folder was made from a hub id."""
    found = parse_hub_id(name)
    return found is not None and bool({found.folder, f"models--{found.folder}"} & set(path.parts))


def exports() -> Path:
    """The folder of exported hub models."""
    return user_cache() / "hub"


def run_export(arguments: Sequence[str]) -> None:
    """Run `trilens export` in a process of its own, so that this one neither loads torch nor keeps its memory."""
    done = subprocess.run(
        [sys.executable, "-m", "trilens", "export", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"the export of {arguments[0]} ended with code {done.returncode}"]
        raise BadModel(lines[-1].removeprefix("trilens: "))


@contextmanager
def clear_errors(name: str) -> Iterator[None]:
    """Turn errors of huggingface_hub into one line."""
    from huggingface_hub import constants, errors

    repository, _, revision = name.partition("@")
    try:
        yield
    except errors.GatedRepoError as error:
        raise BadModel(
            f"{name} is a gated model; accept its conditions at {constants.ENDPOINT}/{repository}, then log in with "
            "`hf auth login` or set HF_TOKEN"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise BadModel(
            f"there is no folder {name}, and the hub has no public model of that name; expected the path of a model or a hub "
            "id such as intfloat/e5-small-v2: for a private model, set HF_TOKEN"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise BadModel(f"the hub has no revision {revision} of {repository}; choose another one") from error
    except errors.LocalEntryNotFoundError as error:
        reason = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else f"{constants.ENDPOINT} cannot be reached"
        raise BadModel(
            f"there is no folder {name}, its download is not in {constants.HF_HUB_CACHE}, and {reason}; connect and repeat, or "
            "copy the model folder here and give its path"
        ) from error
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadModel(f"{name} cannot be downloaded from {constants.ENDPOINT} ({reason}); repeat, or give a path") from error


@contextmanager
def silent_downloads() -> Iterator[None]:
    """Suppress the progress bars of huggingface_hub."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    before = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not before:
            enable_progress_bars()

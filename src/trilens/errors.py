"""The exceptions of trilens, and the one-line form of validation errors.

Every message is one line: what was given, what was expected, what to do.
"""

import errno
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

LONGEST_VALUE = 80
ERROR_HEADER = "X-Trilens-Error"
"""The header in which an HTTP response names the class of its error."""


class TrilensError(Exception):
    """Base class of all errors. The message is one line that a user can act on."""


class BadInput(TrilensError):
    """A document, query, file or parameter is invalid."""


class Unreadable(BadInput):
    """A file or record cannot be read. `reason` says why in a few words, by which skipped files are counted."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class BadOptions(BadInput):
    """Options or a configuration with an unknown key or a value of the wrong form."""


class BadFilter(BadInput):
    """A metadata filter does not have the documented form."""


class BadModel(TrilensError):
    """A model folder is missing, incomplete, damaged or of the wrong kind."""


class CollectionError(TrilensError):
    """Base class of errors of a collection on disk."""


class CollectionMissing(CollectionError):
    """There is no collection at this path."""


class CollectionExists(CollectionError):
    """The path of a new collection exists already."""


class CollectionLocked(CollectionError):
    """Another process is writing to this collection."""


class CollectionDamaged(CollectionError):
    """A file of the collection is missing, truncated, changed or foreign."""


class CollectionReadOnly(CollectionError):
    """The collection cannot be written: the folder is read-only or the disk is full."""


class OutOfResources(CollectionError):
    """The system has no file descriptor or memory left; the collection itself may be sound."""


class UnknownFormat(CollectionError):
    """The collection has a format version that this version of trilens does not read."""


class TrainingFailed(TrilensError):
    """A training run cannot continue because its loss is NaN or infinite."""


class ServiceFailed(TrilensError):
    """An external service did not answer as expected."""


class ServiceBusy(ServiceFailed):
    """An external service did not answer, which another attempt may change after `wait` seconds (None: it named no time)."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Stopped(TrilensError):
    """Work was stopped because its time was over or nobody waited for it any more."""


def shortage(path: Path, error: OSError | MemoryError) -> OutOfResources | None:
    """The error to raise if the system refused `path` a file descriptor or memory; None if something else went wrong."""
    number = errno.ENOMEM if isinstance(error, MemoryError) else error.errno
    if number in (errno.EMFILE, errno.ENFILE):
        return OutOfResources(
            f"{path} cannot be opened: too many open files; raise the limit with `ulimit -n` and run it again"
        )
    if number == errno.ENOMEM:
        return OutOfResources(
            f"{path} cannot be opened: not enough memory or address space; free memory, or raise the limit with `ulimit -v`"
        )
    return None


def first_error(error: "ValidationError | Sequence[Mapping[str, Any]]", known: Iterable[str] = ()) -> str:
    """Format the first error of a failed validation as one line: "PLACE is VALUE; expected …".

    `error` is a pydantic error or the list that its `errors()` returns. `known` are the accepted top-level keys, listed when
    an unknown key was given.
    """
    details: Mapping[str, Any] = (error if isinstance(error, Sequence) else error.errors(include_url=False))[0]
    path = [str(part) for part in details["loc"]]
    place = ".".join(path) or "the input"
    context = details.get("ctx", {})
    match details["type"]:
        case "missing":
            return f"{place} is missing; expected a value"
        case "extra_forbidden":
            names = ", ".join(known) if len(path) == 1 else ""
            advice = f"expected one of {names}" if names else "remove it or correct its name"
            return f"option {place!r} is not known; {advice}"
        case "value_error":
            return _placed(path, str(details["msg"]).removeprefix("Value error, "))
        case "json_invalid":
            return f"{place} is not valid JSON ({context['error']}); expected an object"
        case "union_tag_invalid" | "union_tag_not_found":
            name = ".".join([*path, context["discriminator"].strip("'")])
            if "tag" not in context:
                return f"{name} is missing; expected a value"
            return f"{name} is {context['tag']!r}; expected one of {context['expected_tags']}"
    return f"{place} is {_shown(details['input'])}; {_expected(details['msg'])}"


def nested_error(place: str, error: BadInput) -> str:
    """The message of an error inside `place`: "PLACE.FIELD is VALUE; …"."""
    return f"{place}: {error}" if str(error).startswith("option ") else f"{place}.{error}"


def _placed(path: Sequence[str], message: str) -> str:
    """Prefix the message of a validator with its place, which the message may already name."""
    if path and message.startswith("is "):
        return f"{'.'.join(path)} {message}"
    if path and message.startswith(f"{path[-1]} "):
        return ".".join([*path[:-1], message])
    return f"{'.'.join(path)}: {message}" if path else message


def _shown(value: Any) -> str:
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= LONGEST_VALUE else shown[:LONGEST_VALUE] + " …"


def _expected(message: str) -> str:
    """Turn pydantic's "Input should be …" into "expected …"."""
    message = re.sub(r", (unable to parse|got) .*| after validation, not .*", "", message)
    matched = re.fullmatch(r"(\w+) should (be|have) (.+)", message)
    if matched is None:
        return f"{message[:1].lower()}{message[1:]}"
    subject, verb, wanted = matched.groups()
    if verb == "have":
        return f"expected a {subject.lower()} with {wanted}"
    if re.match("a valid dictionary|an object", wanted):
        return "expected a mapping"
    return f"expected a value {wanted}" if re.match("greater|less", wanted) else f"expected {wanted}"

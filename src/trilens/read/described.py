"""Metadata and titles in the form that all formats share (`docs/formats.md`)."""

from datetime import UTC, datetime
from typing import Any


def described(**fields: Any) -> dict[str, Any]:
    """These fields without the empty ones. A trailing `_` is removed from names, for names such as `from`."""
    return {name.rstrip("_"): value for name, value in fields.items() if value not in (None, "", [])}


def moment(time: datetime | None) -> str:
    """A point in time as ISO 8601 in UTC, so that dates of all formats compare as strings. Without a zone, UTC is assumed."""
    if time is None:
        return ""
    known = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    try:
        return known.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError):
        return ""


def one_line(text: str | None) -> str:
    """A title on one line."""
    return " ".join((text or "").split())


def part_title(whole: str | None, part: str | None) -> str:
    """The title of a part of a file: `whole: part`, or the one that there is."""
    titles = dict.fromkeys(filter(None, (one_line(whole), one_line(part))))
    return ": ".join(titles)

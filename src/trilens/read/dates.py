"""Dates and times in the forms that tables have, as ISO 8601, so that filters compare them by time."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache

from trilens.read.described import moment

Parts = dict[str, str | None]

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
TIME = (
    r"(?:(?:T| +)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?"
    r"(?: ?(?P<half>[AaPp])[Mm])?(?: ?(?P<zone>Z|UTC|GMT|[-+]\d{2}:?\d{2}))?)?"
)
WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
FORMS = [
    re.compile(form + TIME, re.ASCII)
    for form in (
        r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
        r"(?P<one>\d{1,2})([-/])(?P<other>\d{1,2})\2(?P<year>\d{4})",
        WEEKDAY + r"(?P<day>\d{1,2})([- ])(?P<name>[A-Za-z]{3,9})\.?\2(?P<year>\d{4})",
        WEEKDAY + r"(?P<name>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})",
    )
]


@lru_cache(maxsize=4096)
def iso_date(text: str, month_first: bool) -> str | None:
    """The date or time as `2024-01-31` or `2024-01-31T12:00:00Z`; None if it is none, or has fractions of a second.

    `month_first` tells what 03/04/2024 means.
    """
    found = next((match for form in FORMS if (match := form.fullmatch(text))), None)
    if found is None:
        return None
    parts = found.groupdict()
    try:
        day = _day(parts, month_first)
        return day.isoformat() if parts["hour"] is None else moment(_time(day, parts)) or None
    except ValueError:
        return None


def _day(parts: Parts, month_first: bool) -> date:
    year = _number(parts["year"])
    if "one" in parts:
        one, other = _number(parts["one"]), _number(parts["other"])
        return date(year, one, other) if month_first else date(year, other, one)
    month = _month(parts["name"] or "") if "name" in parts else _number(parts["month"])
    return date(year, month, _number(parts["day"]))


def _month(name: str) -> int:
    """The number of an English month, by its name or the first letters of it; 0, which is none, for other words."""
    return next((number for number, month in enumerate(MONTHS, 1) if month.startswith(name.lower())), 0)


def _time(day: date, parts: Parts) -> datetime:
    hour = _number(parts["hour"])
    if parts["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("no hour of half a day")
        hour = hour % 12 + 12 * (parts["half"] in "Pp")
    time = datetime(day.year, day.month, day.day, hour, _number(parts["minute"]), _number(parts["second"]))
    return time.replace(tzinfo=_zone(parts["zone"] or "Z"))


def _zone(text: str) -> timezone:
    if text[0] not in "+-":
        return UTC
    distance = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-distance if text[0] == "-" else distance)


def _number(digits: str | None) -> int:
    return int(digits or 0)

"""Front matter of Markdown files: the `key: value` lines between two `---` lines at the top."""

import re
from typing import Any

PAIR = re.compile(r"([A-Za-z_][\w .-]*?)[ \t]*:(?:[ \t]+(.*))?$")
LIST_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)$")
INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,14})")
DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,15}")


def split_front_matter(source: str) -> tuple[dict[str, Any], str]:
    """The front matter and the rest of the source. Only scalars and flat lists are read; nested objects are skipped."""
    lines = source.split("\n")
    if lines[0].rstrip() != "---":
        return {}, source
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}, source
    metadata: dict[str, Any] = {}
    key = ""
    for line in lines[1:end]:
        pair = PAIR.match(line)
        item = LIST_ITEM.match(line)
        if pair:
            key = pair[1]
            if pair[2]:
                metadata[key] = _value(pair[2].strip())
        elif item and key and isinstance(metadata.setdefault(key, []), list):
            metadata[key].append(_scalar(item[1].strip()))
    return metadata, "\n".join(lines[end + 1 :])


def _value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    return _scalar(text)


def _scalar(text: str) -> str | int | float | bool:
    """Convert numbers and booleans, so that filters can compare them; everything else stays a string."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if INTEGER.fullmatch(text):
        return int(text)
    if DECIMAL.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text.lower(), text)

"""`Changes`: what a commit did to the documents."""

from dataclasses import dataclass, fields


@dataclass(slots=True)
class Changes:
    """Document counts of a commit. `truncated` is the number of passages that exceed the maximum length of the model."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    truncated: int = 0

    def __add__(self, other: "Changes") -> "Changes":
        return Changes(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))

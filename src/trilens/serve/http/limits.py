"""How much one request may ask for, so that no client can take the service away from the others."""

from dataclasses import dataclass, fields

from trilens.errors import BadInput


@dataclass(frozen=True, slots=True)
class Limits:
    """`seconds` is how long a request may wait and run; `waiting` how many queries may wait before others are sent away."""

    body_bytes: int = 8 << 20
    k: int = 1_000
    queries: int = 100
    query_characters: int = 10_000
    texts: int = 100
    documents: int = 1_000
    explained: int = 50
    seconds: float = 30.0
    waiting: int = 2_000

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                raise BadInput(f"limit {field.name} is {getattr(self, field.name)}; expected more than 0")

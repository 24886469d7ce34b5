import subprocess
import sys
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from trilens.errors import first_error


class Nested(BaseModel):
    model_config = ConfigDict(extra="forbid")

    probes: int = Field(default=1, ge=1)
    method: Literal["maxsim", "xtr"] = "maxsim"
    overlap: int = 0

    @field_validator("overlap")
    @classmethod
    def _small(cls, overlap: int) -> int:
        if overlap > 5:
            raise ValueError(f"is {overlap}; expected fewer than 6 words")
        return overlap


class Triples(BaseModel):
    format: Literal["triples"]


class Pairs(BaseModel):
    format: Literal["pairs"]


class Example(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    lenses: list[str] = Field(default=["bm25"], min_length=1)
    multi: Nested = Nested()
    data: list[Annotated[Triples | Pairs, Field(discriminator="format")]] = []

    @field_validator("lenses")
    @classmethod
    def _known_lenses(cls, lenses: list[str]) -> list[str]:
        if lenses == ["zip"]:
            raise ValueError("lenses are zip; expected bm25")
        return lenses

    @model_validator(mode="after")
    def _not_both(self) -> "Example":
        if self.name == "both":
            raise ValueError("give either name or lenses")
        return self


def message_of(content: Any, known: tuple[str, ...] = ()) -> str:
    with pytest.raises(ValidationError) as caught:
        Example.model_validate(content)
    message = first_error(caught.value, known)
    assert first_error(caught.value.errors(), known) == message
    return message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "name is missing; expected a value"),
        ({"name": ""}, "name is ''; expected a string with at least 1 character"),
        ({"name": 3}, "name is 3; expected a valid string"),
        ({"name": "x", "lenses": []}, "lenses is []; expected a list with at least 1 item"),
        ({"name": "x", "lenses": ["zip"]}, "lenses are zip; expected bm25"),
        ({"name": "x", "lenses": ["bm25", 3]}, "lenses.1 is 3; expected a valid string"),
        ({"name": "x", "multi": {"probes": 0}}, "multi.probes is 0; expected a value greater than or equal to 1"),
        ({"name": "x", "multi": {"probes": "many"}}, "multi.probes is 'many'; expected a valid integer"),
        ({"name": "x", "multi": {"probes": 1.5}}, "multi.probes is 1.5; expected a valid integer"),
        ({"name": "x", "multi": {"method": "zip"}}, "multi.method is 'zip'; expected 'maxsim' or 'xtr'"),
        ({"name": "x", "multi": {"overlap": 9}}, "multi.overlap is 9; expected fewer than 6 words"),
        ({"name": "x", "multi": []}, "multi is []; expected a mapping"),
        ({"name": "x", "data": [{}]}, "data.0.format is missing; expected a value"),
        ({"name": "x", "data": [{"format": "zip"}]}, "data.0.format is 'zip'; expected one of 'triples', 'pairs'"),
        ({"name": "both"}, "give either name or lenses"),
        ([], "the input is []; expected a mapping"),
    ],
)
def test_the_message_names_place_value_and_expectation(content: Any, message: str) -> None:
    assert message_of(content) == message


def test_unknown_keys_are_answered_with_the_known_ones() -> None:
    known = ("name", "lenses")
    assert message_of({"name": "x", "bm52": 1}, known) == "option 'bm52' is not known; expected one of name, lenses"
    assert message_of({"name": "x", "bm52": 1}) == "option 'bm52' is not known; remove it or correct its name"
    nested = {"name": "x", "multi": {"probs": 1}}
    assert message_of(nested, known) == "option 'multi.probs' is not known; remove it or correct its name"


def test_text_that_is_not_json() -> None:
    with pytest.raises(ValidationError) as caught:
        Example.model_validate_json("{broken")
    assert first_error(caught.value).startswith("the input is not valid JSON (key must be a string at line 1 column 2)")


def test_long_values_are_cut_and_stay_on_one_line() -> None:
    message = message_of({"name": "x", "multi": {"probes": "a\n" * 500}})
    assert "\n" not in message
    assert len(message) < 150
    assert " …; expected a valid integer" in message


def test_pydantic_is_not_imported() -> None:
    code = "import sys, trilens.errors; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

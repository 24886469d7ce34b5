"""`Frozen`: the base of option and configuration models: immutable, without unknown keys, and with errors in one line."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from trilens.errors import BadOptions, first_error


class Frozen(BaseModel):
    """A pydantic model that raises `BadOptions` where its values are wrong."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def __init__(self, **values: Any) -> None:
        """Validate the values."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise BadOptions(first_error(error, known=type(self).model_fields)) from error

from pathlib import Path

import pytest

from trilens.encode.models import bundled_models, resolve_model
from trilens.errors import BadModel

NAME, BUNDLED = next(iter(bundled_models().items()))


def test_names_resolve_to_bundled_folders_and_paths_to_themselves(tmp_path: Path) -> None:
    assert resolve_model(NAME) == BUNDLED
    assert resolve_model(str(tmp_path)) == tmp_path


def test_a_folder_in_the_working_directory_does_not_hide_a_bundled_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / NAME).mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve_model(NAME) == BUNDLED
    assert resolve_model(f"./{NAME}") == Path(NAME)


@pytest.mark.parametrize("name", ["no-such-model", "", "/no/such/folder"])
def test_unknown_names_are_told_what_there_is(name: str) -> None:
    with pytest.raises(BadModel, match=f"path of a model folder.*{NAME}"):
        resolve_model(name)

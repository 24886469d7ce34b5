"""Model lookup by name: bundled models and models in the user's cache."""

from importlib.resources import files
from pathlib import Path

from trilens.encode.folder import CONFIG_FILE
from trilens.encode.hub import hub_model, is_hub_id
from trilens.errors import BadModel
from trilens.text.files import user_cache


def bundled_models() -> dict[str, Path]:
    """The bundled models, by name."""
    return _models_in(Path(str(files("trilens") / "models")))


def model_cache() -> Path:
    """The user's folder of named models."""
    return user_cache() / "models"


def cached_models() -> dict[str, Path]:
    """The models in the user's cache, by name."""
    return _models_in(model_cache())


def resolve_model(name: str) -> Path:
    """The folder of a model, given the name of a bundled or cached model, a path or a hub id, which may be exported first.

    Bundled models take precedence over cached ones, and both over a folder of the same name in the working directory; write
    `./name` for that folder.
    """
    known = cached_models() | bundled_models()
    if name in known:
        return known[name]
    path = Path(name).expanduser()
    if is_hub_id(name):
        return hub_model(name)
    if not name or not path.is_dir():
        raise BadModel(
            f"there is no model {name!r}; expected the path of a model folder, a hub id or one of the models that "
            f"`trilens models` lists: {', '.join(known) or 'none'}"
        )
    return path


def _models_in(home: Path) -> dict[str, Path]:
    return {config.parent.name: config.parent for config in sorted(home.glob(f"*/{CONFIG_FILE}"))}

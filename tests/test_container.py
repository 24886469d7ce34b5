"""Dockerfile, compose.yaml and .dockerignore against the project: ports, paths, users, extras and commands."""

import json
import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from trilens.cli.main import load_command

pytest.importorskip("fastapi")

from trilens.http.app import make_app
from trilens.http.keys import READ_VARIABLE, load_keys
from trilens.http.limits import Limits
from trilens.http.metrics import Metrics
from trilens.http.service import Service
from trilens.http.start import ServeOptions

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# The instructions of the Dockerfile, one (name, arguments) each.
INSTRUCTIONS = [
    tuple(line.split(maxsplit=1))
    for line in re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8")).splitlines()
    if line and not line.startswith("#")
]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def arguments(name: str) -> list[str]:
    """The arguments of all instructions of this name."""
    return [rest for known, rest in INSTRUCTIONS if known == name]


def environment() -> dict[str, str]:
    return dict(word.split("=", 1) for rest in arguments("ENV") for word in shlex.split(rest))


def volumes() -> list[str]:
    (listed,) = arguments("VOLUME")
    paths: list[str] = json.loads(listed)
    return paths


def parse(words: list[str]) -> dict[str, Any]:
    """The parameters of a command of trilens."""
    with load_command(words[0]).make_context(words[0], words[1:]) as context:
        parameters: dict[str, Any] = context.params
        return parameters


def test_the_service_starts_on_the_port_that_is_exposed_and_checked() -> None:
    (command,), (port,), (check,) = arguments("CMD"), arguments("EXPOSE"), arguments("HEALTHCHECK")
    served = parse(json.loads(command))
    assert (served["host"], served["port"], port) == ("0.0.0.0", ServeOptions().port, str(served["port"]))
    (url,) = re.findall(r"http://[^']+", check)
    assert url == f"http://127.0.0.1:{port}/api/v1/ready"
    app = make_app(Service({}, Limits(), load_keys(None, {}), Metrics(), False))
    assert "/api/v1/ready" in app.openapi()["paths"]
    program = json.loads(check.partition("CMD")[2])
    assert program[:2] == ["python", "-c"]
    compile(program[2], "check", "exec")


def test_it_runs_as_a_user_who_owns_the_volumes_and_nothing_else() -> None:
    (user,), (entry,) = arguments("USER"), arguments("ENTRYPOINT")
    assert user.isdecimal() and int(user) > 0
    assert json.loads(entry) == list(PROJECT["project"]["scripts"])
    (made,) = [rest for rest in arguments("RUN") if rest.startswith("useradd")]
    useradd, install = (shlex.split(part) for part in made.split("&&"))
    assert useradd[useradd.index("--uid") + 1] == user
    assert [word for word in install if word.startswith("/")] == volumes()
    assert f"--owner={useradd[-1]}" in install
    workdir = arguments("WORKDIR")[-1]
    assert workdir in volumes()


def test_caches_are_in_a_volume() -> None:
    variables = environment()
    for place in (variables["NUMBA_CACHE_DIR"], f"{variables['XDG_CACHE_HOME']}/trilens"):
        assert any(Path(place).is_relative_to(volume) for volume in volumes())


def test_extras_and_the_version_of_python_are_those_of_the_project() -> None:
    (extras,) = re.findall(r"\.\[([\w,]+)\]", " ".join(arguments("RUN")))
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    images = {rest.split()[0] for rest in arguments("FROM")}
    (version,) = {re.fullmatch(r"python:(3\.\d+)-slim-\w+", image)[1] for image in images}  # type: ignore[index]
    assert f">={version}" == PROJECT["project"]["requires-python"]


def test_the_build_gets_what_the_wheel_is_made_of_and_no_more() -> None:
    """The first pattern excludes everything; what follows names the files that hatchling reads."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    kept = {line[1:] for line in lines if line.startswith("!")}
    project = PROJECT["project"]
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    read = {"pyproject.toml", project["readme"], *project["license-files"], *packages}
    assert {path for path in read if not any(path == name or path.startswith(f"{name}/") for name in kept)} == set()
    assert all((ROOT / name).exists() for name in kept)
    assert not any(fnmatch(name, secret) for name in kept for secret in (".git*", ".venv*", "*key*"))


def test_compose_runs_it_read_only_on_the_volumes_with_a_key() -> None:
    service = COMPOSE["services"]["trilens"]
    assert service["read_only"] is True and service["tmpfs"] == ["/tmp"] and service["cap_drop"] == ["ALL"]
    mounted = dict(volume.split(":") for volume in service["volumes"])
    assert list(mounted) == list(COMPOSE["volumes"]) and sorted(mounted.values()) == sorted(volumes())
    served = parse(service["command"])
    (published,) = service["ports"]
    assert published == f"127.0.0.1:{served['port']}:{served['port']}"
    assert list(service["environment"]) == [READ_VARIABLE]

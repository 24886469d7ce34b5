"""What the package metadata says about dependencies and extras, compared with what is installed."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, version

from packaging.requirements import Requirement

PACKAGE = "trilens"
CONTRIBUTORS = ("dev", "doors", "bench")  # extras that only contributors need


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra, and its packages that are missing or have an untested version."""

    name: str
    missing: tuple[str, ...]
    install: str


def dependencies() -> dict[str, str]:
    """The packages that every installation needs, with their versions; those that are missing have the version ""."""
    return {wanted.name: _version(wanted) for wanted in _requirements("")}


def unmet(extra: str) -> tuple[str, ...]:
    """The requirements of an extra that are missing or installed in an untested version."""
    return tuple(_described(wanted) for wanted in _requirements(extra) if not _is_met(wanted))


def problems() -> list[str]:
    """What the package itself needs and does not have: one line each, with the command that installs it."""
    wrong = [wanted for wanted in _requirements("") if not _is_met(wanted)]
    return [f"{_described(wanted)} is needed; run `pip install '{wanted.name}{wanted.specifier}'`" for wanted in wrong]


def extras() -> list[Extra]:
    """The extras for users."""
    names = [name for name in metadata(PACKAGE).get_all("Provides-Extra") or [] if name not in CONTRIBUTORS]
    return [Extra(name, unmet(name), f"pip install '{PACKAGE}[{name}]'") for name in sorted(names)]


def _requirements(extra: str) -> Iterator[Requirement]:
    """What an extra adds on this platform, with the extras that it includes; for "" what is always needed."""
    for wanted in map(Requirement, metadata(PACKAGE).get_all("Requires-Dist") or []):
        always = _applies(wanted, "")
        if always != (not extra) or not _applies(wanted, extra):
            continue
        if wanted.name == PACKAGE:
            for included in sorted(wanted.extras):
                yield from _requirements(included)
        else:
            yield wanted


def _applies(wanted: Requirement, extra: str) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": extra})


def _version(wanted: Requirement) -> str:
    try:
        return version(wanted.name)
    except PackageNotFoundError:
        return ""


def _is_met(wanted: Requirement) -> bool:
    return bool(installed := _version(wanted)) and wanted.specifier.contains(installed, prereleases=True)


def _described(wanted: Requirement) -> str:
    installed = _version(wanted)
    return f"{wanted.name}{wanted.specifier} instead of {installed}" if installed else wanted.name

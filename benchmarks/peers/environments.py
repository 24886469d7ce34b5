"""An environment for each peer, made from its pinned requirements, so that no peer meets another's versions.

`requirements/<peer>.txt` says what is installed; a first line `# pip: OPTIONS` is given to pip. Environments are kept in
`runs/peers` (or $TRILENS_PEERS) and made anew when the requirements or the Python change. A peer that cannot be installed is
an error that says why, which the benchmarks record in its place.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"
ENVIRONMENTS = Path(os.environ.get("TRILENS_PEERS", Path(__file__).parents[2] / "runs" / "peers")).resolve()
JAVA_HOMES = Path("/usr/lib/jvm")


class PeerMissing(Exception):
    """Why a peer cannot take part."""


def python_of(peer: str, requirements: Path = REQUIREMENTS, environments: Path = ENVIRONMENTS) -> Path:
    """The Python of a peer's environment, which is made if it is not there."""
    wanted = (requirements / f"{peer}.txt").read_text(encoding="utf-8")
    folder = environments / peer
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    made = f"# {sys.version}\n{wanted}"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != made:
        print(f"installing {peer} into {folder} …", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        first = wanted.partition("\n")[0]
        options = first.removeprefix("# pip:").split() if first.startswith("# pip:") else []
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *options]
        _run([*install, "--requirement", str(requirements / f"{peer}.txt")])
        stamp.write_text(made, encoding="utf-8")
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise PeerMissing(f"could not be installed: {lines[-1].removeprefix('ERROR: ') if lines else 'pip failed'}")


def java_home(least: int) -> Path:
    """The home of a Java of at least this version."""
    named = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    homes = [Path(named)] if named else []
    homes += [Path(on_path).resolve().parents[1]] if on_path else []
    homes += sorted(JAVA_HOMES.glob("*"), reverse=True)
    found = {home: _java_version(home / "bin" / "java") for home in homes if (home / "bin" / "java").exists()}
    for home, version in found.items():
        if version >= least:
            return home
    raise PeerMissing(f"needs Java {least} or newer; found {', '.join(map(str, sorted(set(found.values())))) or 'none'}")


def _java_version(java: Path) -> int:
    said = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False).stderr
    number = re.search(r'version "(\d+)', said)
    return int(number[1]) if number else 0

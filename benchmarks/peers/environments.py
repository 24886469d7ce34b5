"""Virtual environments of peers, created from pinned requirements, one per peer to avoid version conflicts.

`requirements/<peer>.txt` lists the packages; a first line `# pip: OPTIONS` is passed to pip. Environments are kept in
`runs/peers` (or $TRILENS_PEERS) and recreated when the requirements or the Python version change. If a peer cannot be
installed, the benchmarks record the reason instead of results.
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
    """A peer cannot be measured; the message is the reason."""


def python_of(peer: str, requirements: Path = REQUIREMENTS, environments: Path = ENVIRONMENTS) -> Path:
    """Python executable of a peer's environment; the environment is created if it is missing or outdated."""
    packages = (requirements / f"{peer}.txt").read_text(encoding="utf-8")
    folder = environments / peer
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    content = f"# {sys.version}\n{packages}"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != content:
        print(f"installing {peer} into {folder} …", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        first = packages.partition("\n")[0]
        options = first.removeprefix("# pip:").split() if first.startswith("# pip:") else []
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *options]
        _run([*install, "--requirement", str(requirements / f"{peer}.txt")])
        stamp.write_text(content, encoding="utf-8")
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise PeerMissing(f"could not be installed: {lines[-1].removeprefix('ERROR: ') if lines else 'pip failed'}")


def java_home(least: int) -> Path:
    """JAVA_HOME of an installation of at least this version."""
    named = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    homes = [Path(named)] if named else []
    homes += [Path(on_path).resolve().parents[1]] if on_path else []
    homes += sorted(JAVA_HOMES.glob("*"), reverse=True)
    versions = {home: _java_version(home / "bin" / "java") for home in homes if (home / "bin" / "java").exists()}
    for home, version in versions.items():
        if version >= least:
            return home
    raise PeerMissing(f"needs Java {least} or newer; found {', '.join(map(str, sorted(set(versions.values())))) or 'none'}")


def _java_version(java: Path) -> int:
    output = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False).stderr
    number = re.search(r'version "(\d+)', output)
    return int(number[1]) if number else 0

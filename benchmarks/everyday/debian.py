"""Descriptions of the programs in Debian as documents.

Of the packages in the chosen sections, a fixed rule keeps programs that people install by name. It leaves out parts of larger
packages by their names, packages whose debtags name another role than a program, members of large families (dictionaries,
tables and plug-ins that differ by a word), and packages that no package of another source mentions.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from trilens.text.document import Document

Stanza = Mapping[str, str]

SECTIONS = {"admin", "comm", "database", "editors", "education", "games", "gnome", "graphics", "kde", "mail", "misc", "net"}
SECTIONS |= {"news", "shells", "sound", "text", "utils", "vcs", "video", "web", "x11", "xfce"}
# The first line matches beginnings, not whole words, so aspell, gnome-shell-extensions, hunspell, nodejs, phpmyadmin, tasksel
# and taskwarrior are left out, too. It stays: the answers to the questions were given for the collection without them.
PART = re.compile(
    r"^(aspell|elpa|fonts|gir1|gnome-shell-extension|golang|hunspell|lib|myspell|node|php|python3?|ruby|task|wordlist)"
    r"|-(all|backend|common|core|daemon|data|dbg|dev|dkms|el|examples|extras?|full|headers|minimal|tests?|transitional|udeb)$"
    r"|-(addons?|dict|doc|driver|help|hyphen|i18n|icons?|l10n|lang|libs?|locales?|modules?|plugins?|themes?)(-|$)"
)
LARGEST_FAMILY = 12
FAMILIES_OF_PROGRAMS = {"apt", "git", "gnome", "kde", "xfce4"}
MENTIONS = ("Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances")
MENTIONED = re.compile(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]+)")


def programs(packages: Iterable[str], translations: Iterable[str]) -> Iterator[Document]:
    """Yield a document for each program, ordered by name; the arguments are the texts of apt's lists."""
    by_name: dict[str, Stanza] = {}
    for listed in packages:
        for stanza in stanzas(listed):
            by_name.setdefault(stanza["Package"], stanza)
    long = {_described(stanza): stanza["Description-en"] for listed in translations for stanza in stanzas(listed)}
    for name in chosen(by_name):
        title, text = description(long.get(_described(by_name[name]), by_name[name]["Description"]))
        yield Document(name, text, title)


def _described(stanza: Stanza) -> tuple[str, str]:
    """What a package and its long description in another list have in common."""
    return stanza["Package"], stanza["Description-md5"]


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """Parse a list of apt; the lines of a field are joined by newlines and keep their indentation."""
    for block in text.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line[:1] in (" ", "\t"):
                fields[name] += f"\n{line}"
            else:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        if "Package" in fields:
            yield fields


def description(field: str) -> tuple[str, str]:
    """The short and the long description of a field in Debian's format: a line ` .` is an empty line."""
    title, *lines = field.split("\n")
    return title, "\n".join("" if line.strip() == "." else line[1:].rstrip() for line in lines).strip()


def chosen(packages: Mapping[str, Stanza]) -> list[str]:
    """Names of the programs among the packages, by the rule of this module."""
    candidates = [
        name for name, stanza in sorted(packages.items()) if stanza["Section"] in SECTIONS and _whole(stanza, packages)
    ]
    families = Counter(_family(name) for name in candidates)
    mentioned = _mentioned_elsewhere(packages)
    return [
        name
        for name in candidates
        if name in mentioned
        and _may_be_program(packages[name])
        and (families[_family(name)] <= LARGEST_FAMILY or _family(name) in {name, *FAMILIES_OF_PROGRAMS})
    ]


def source(stanza: Stanza) -> str:
    """Name of the source package."""
    return stanza.get("Source", stanza["Package"]).partition(" ")[0]


def _whole(stanza: Stanza, packages: Mapping[str, Stanza]) -> bool:
    """False for a part of a larger package: by its name, or because it extends the name of the main package of its source."""
    name, main = stanza["Package"], source(stanza)
    return not PART.search(name) and not (main in packages and name.startswith(f"{main}-"))


def _may_be_program(stanza: Stanza) -> bool:
    """False if debtags name only other roles; about half of the packages have no role."""
    tags = stanza.get("Tag", "")
    return "role::program" in tags or "role::" not in tags


def _family(name: str) -> str:
    return name.partition("-")[0]


def _mentioned_elsewhere(packages: Mapping[str, Stanza]) -> set[str]:
    """Packages that a package of another source depends on, recommends, suggests or enhances."""
    return {
        name
        for stanza in packages.values()
        for field in MENTIONS
        for name in MENTIONED.findall(stanza.get(field, ""))
        if name in packages and source(packages[name]) != source(stanza)
    }

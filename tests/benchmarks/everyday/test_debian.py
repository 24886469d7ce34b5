"""Programs of Debian from lists in apt's format."""

import pytest

from benchmarks.everyday.debian import LARGEST_FAMILY, chosen, description, programs, stanzas

PACKAGES = """Package: ncdu
Version: 1.18-0.2
Architecture: amd64
Description: ncurses disk usage viewer
Description-md5: 3a4b
Tag: admin::monitoring, implemented-in::c, interface::text-mode,
 role::program, scope::utility
Section: admin

Package: baobab
Source: baobab (43.0-1)
Recommends: yelp, ncdu (>= 1.0) | gdmap
Description: GNOME disk usage analyzer
Description-md5: 5c6d
Section: gnome

Package: baobab-dbg
Source: baobab
Depends: baobab
Description: debugging symbols
Description-md5: 77aa
Section: gnome
"""
TRANSLATIONS = """Package: ncdu
Description-md5: 3a4b
Description-en: ncurses disk usage viewer
 Ncdu is a ncurses-based du viewer. It provides a fast and easy-to-use
 interface through famous du utility.
 .
   * it browses
   * it deletes

Package: ncdu
Description-md5: ffff
Description-en: the description of another version
 Not this one.
"""


def package(name: str, section: str = "utils", **fields: str) -> dict[str, str]:
    named = {field.replace("_", "-"): value for field, value in fields.items()}
    return {"Package": name, "Section": section, "Description": name, "Description-md5": "1"} | named


def names(*packages: dict[str, str], mentioned: bool = True) -> list[str]:
    """The chosen packages, each mentioned by a library of another source."""
    mentioning = package("libother", "libs", Suggests=", ".join(stanza["Package"] for stanza in packages))
    return chosen({stanza["Package"]: stanza for stanza in (*packages, *([mentioning] if mentioned else []))})


def test_fields_keep_their_continuation_lines() -> None:
    first, second, third = stanzas(PACKAGES)
    assert first["Tag"].split() == [
        "admin::monitoring,",
        "implemented-in::c,",
        "interface::text-mode,",
        "role::program,",
        "scope::utility",
    ]
    assert (second["Source"], third["Package"]) == ("baobab (43.0-1)", "baobab-dbg")


def test_a_description_is_a_title_and_paragraphs() -> None:
    field = next(stanzas(TRANSLATIONS))["Description-en"]
    assert description(field) == (
        "ncurses disk usage viewer",
        "Ncdu is a ncurses-based du viewer. It provides a fast and easy-to-use\n"
        "interface through famous du utility.\n\n  * it browses\n  * it deletes",
    )


def test_a_program_has_the_long_description_of_its_version() -> None:
    (document,) = programs([PACKAGES], [TRANSLATIONS])
    assert (document.doc_id, document.title) == ("ncdu", "ncurses disk usage viewer")
    assert document.text.startswith("Ncdu is a ncurses-based du viewer.")


def test_the_first_list_that_has_a_package_decides() -> None:
    other = PACKAGES.replace("ncurses disk usage viewer", "an older text")
    assert [document.title for document in programs([other, PACKAGES], [])] == ["an older text"]


def test_programs_are_mentioned_by_a_package_of_another_source() -> None:
    assert names(package("tree")) == ["tree"]
    assert names(package("tree"), mentioned=False) == []
    same_source = package("tree-tools", Source="tree", Recommends="tree")
    assert names(package("tree"), same_source, mentioned=False) == []


@pytest.mark.parametrize(
    "part",
    ["libfoo", "foo-doc", "foo-dev", "foo-data", "foo-l10n-de", "python3-foo", "gnome-shell-extension-foo", "foo-plugin-bar"],
)
def test_parts_of_packages_are_left_out_by_their_names(part: str) -> None:
    assert names(package(part), package("foo")) == ["foo"]


def test_a_name_that_extends_the_main_package_of_its_source_is_a_part() -> None:
    assert names(package("vim"), package("vim-gtk3", Source="vim (2:9)")) == ["vim"]
    assert names(package("openssh-client", Source="openssh")) == ["openssh-client"]


def test_other_sections_and_other_roles_are_left_out() -> None:
    assert names(package("tree"), package("gcc", "devel")) == ["tree"]
    assert names(package("aa", Tag="role::program"), package("bb", Tag="role::data"), package("cc", Tag="use::editing")) == [
        "aa",
        "cc",
    ]


def test_large_families_are_left_out_but_for_their_head_and_those_of_programs() -> None:
    def family(head: str, members: int) -> list[str]:
        return names(package(head), *(package(f"{head}-{member:02}") for member in range(members - 1)))

    assert len(family("dict", LARGEST_FAMILY)) == LARGEST_FAMILY
    assert family("dict", LARGEST_FAMILY + 1) == ["dict"]
    assert len(family("gnome", LARGEST_FAMILY + 1)) == LARGEST_FAMILY + 1

"""What `index` reports of skipped files: the first messages, and a summary by reason at the end, on standard error."""

import sys
from collections import Counter
from typing import Any

from trilens.read.duplicates import REPEATED
from trilens.read.readers import FILE
from trilens.read.skipped import LEFT_OUT, NO_READER, Skipped

MOST_MESSAGES = 10
MOST_SUFFIXES = 12


class SkipReport:
    """Counts what is skipped and prints the first errors.

    `strict` stops at the first error everywhere, and False nowhere; None stops only at errors of sources that were named,
    because folders hold files that nobody meant to index.
    """

    def __init__(self, strict: bool | None, quiet: bool = False) -> None:
        self._strict = strict
        self._quiet = quiet
        self._errors = 0
        self.reasons = {unit: Counter[str]() for unit in ("file", "folder", "record")}
        self.suffixes = Counter[str]()

    def __call__(self, skipped: Skipped) -> None:
        if skipped.is_error and (self._strict or (self._strict is None and not skipped.in_folder)):
            raise skipped.error
        self.reasons[skipped.unit][skipped.reason] += 1
        if skipped.suffix:
            self.suffixes[skipped.suffix] += 1
        if skipped.is_error and not self._quiet:
            self._errors += 1
            if self._errors <= MOST_MESSAGES:
                sys.stderr.write(f"skipped: {skipped}\n")

    @property
    def count(self) -> int:
        """The number of skipped files, folders and records, without those that the rules leave out."""
        return sum(sum(counts.values()) - counts[LEFT_OUT] for counts in self.reasons.values())

    def details(self) -> dict[str, Any]:
        """The counts for JSON."""
        return {"skipped_by_reason": self.reasons, "suffixes_without_reader": self.suffixes}

    def summarise(self) -> None:
        """Print the numbers of files, folders and records that were skipped, by reason."""
        parts = [self._part(unit, counts) for unit, counts in self.reasons.items() if counts.total() > counts[LEFT_OUT]]
        if parts:
            sys.stderr.write(f"skipped {'; '.join(parts)}\n")
        if left_out := [f"{_numbered(counts[LEFT_OUT], unit)}" for unit, counts in self.reasons.items() if counts[LEFT_OUT]]:
            sys.stderr.write(f"left out {' and '.join(left_out)}: hidden, ignored, excluded or beside a BEIR corpus\n")
        if self.reasons["record"][REPEATED]:
            sys.stderr.write(f"note: --id-prefix '{FILE}#' tells records of different files with the same ids apart\n")

    def _part(self, unit: str, counts: Counter[str]) -> str:
        shown = [f"{count:,} {reason}" for reason, count in _most(counts) if reason not in (NO_READER, LEFT_OUT)]
        if counts[NO_READER]:
            shown.append(f"{counts[NO_READER]:,} {NO_READER}: {_listed(self.suffixes)}")
        return f"{_numbered(counts.total() - counts[LEFT_OUT], unit)}: {', '.join(shown)}"


def _listed(suffixes: Counter[str]) -> str:
    most = (f"{suffix} {count:,}" for suffix, count in _most(suffixes)[:MOST_SUFFIXES])
    others = f", {len(suffixes) - MOST_SUFFIXES:,} other suffixes" if len(suffixes) > MOST_SUFFIXES else ""
    return ", ".join(most) + others


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    """The counts from the highest to the lowest."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _numbered(count: int, unit: str) -> str:
    return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"

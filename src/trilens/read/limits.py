"""ParsingLimits on what one file may cost to parse: time, memory and size."""

from dataclasses import dataclass

from trilens.errors import Unreadable

MIB = 1 << 20
TOO_LONG = "too long"  # a reason for which files are skipped


@dataclass(frozen=True, slots=True)
class ParsingLimits:
    """ParsingLimits per file. The first three apply to formats that a child process parses (`trilens.read.isolated`)."""

    seconds: float = 60
    """Time to parse a file; each MiB of the file adds a second."""
    memory_bytes: int = 2048 * MIB
    """Address space of the child process."""
    unpacked_bytes: int = 1024 * MIB
    """Size of a file after decompression, and of all members of a ZIP archive such as DOCX."""
    text_bytes: int = 256 * MIB
    """Size of a file that is read as one text, of the text of a document, and of a record or a line of records."""

    def deadline_seconds(self, size_bytes: int) -> float:
        """The time to parse a file of this size."""
        return self.seconds + size_bytes / MIB

    def too_long(self, where: str) -> Unreadable:
        """The error for a record or a line above the limit. It is read no further, so that it does not fill the memory."""
        message = f"{where} has a record or a line of more than {self.text_bytes // MIB:,} MiB; split it, or leave it out"
        return Unreadable(message, TOO_LONG)


LIMITS = ParsingLimits()

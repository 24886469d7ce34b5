"""Whatever I/O call kills a process or fails, nothing acknowledged is lost, nothing half appears and the next write works."""

import re
from random import Random

import pytest

from .fault_process import FaultDriver
from .operations import OPERATIONS
from .shim import FAILURES, KILLS

IN_A_FOLDER = re.compile(r"/segments/[^/]+/")


def draw(random: Random, calls: list[str]) -> int:
    """The number of a call; as often one of the few that concern the catalog or whole folders as any."""
    outside = [number for number, call in enumerate(calls, start=1) if not IN_A_FOLDER.search(call)]
    return random.choice(outside) if random.random() < 0.5 else random.randint(1, len(calls))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_with_faults(faults: FaultDriver, operation: str) -> None:
    random = Random(operation)
    for fault in [*KILLS, *random.sample(sorted(FAILURES), 3)]:
        faults.fail(operation, fault, draw(random, faults.calls(operation, fault)))


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("kinds", "count"), [(sorted(KILLS), 1000), (sorted(FAILURES), 500)])
def test_many_faults(faults: FaultDriver, operation: str, kinds: list[str], count: int) -> None:
    random = Random(f"{operation} {count}")
    for number in range(-(-count // len(OPERATIONS))):
        fault, reader = kinds[number % len(kinds)], random.random() < 0.3
        number = draw(random, faults.calls(operation, fault, reader))
        faults.fail(operation, fault, number, reader, die=random.random() < 0.3)


def sync_of_the_commit(calls: list[str]) -> int:
    """The number of the call that makes the commit durable."""
    recorded = calls.index("rename\t/c/last-commit")
    return max(number for number, call in enumerate(calls[:recorded], start=1) if call == "sync\t/c/catalog.sqlite-wal")


@pytest.mark.parametrize("operation", ["upsert", "optimize"])
def test_a_commit_that_failed_does_not_come_back_without_its_folders(faults: FaultDriver, operation: str) -> None:
    """It is complete in the write-ahead log, where recovery finds it when the last process, a reader, has died."""
    number = sync_of_the_commit(faults.calls(operation, "I/O error", reader=True))
    said = faults.fail(operation, "I/O error", number, reader=True, die=True)
    assert said["error"].endswith("(disk I/O error); check the disk and run it again")


def test_a_commit_is_done_although_what_follows_fails(faults: FaultDriver) -> None:
    calls = faults.calls("upsert", "broken disk")
    number = calls.index("open\t/c/last-commit.new") + 1
    assert faults.fail("upsert", "broken disk", number)["outcome"] == "done"


def test_a_catalog_left_by_a_creation_is_removed_by_the_next_writer(faults: FaultDriver) -> None:
    number = faults.calls("create", "kill after").index("link\t/c/catalog.sqlite") + 1
    assert faults.fail("create", "kill after", number)["outcome"] == "killed"


@pytest.mark.parametrize("fault", ["too many open files", "memory exhausted"])
def test_a_repair_gives_up_nothing_for_a_shortage(faults: FaultDriver, fault: str) -> None:
    calls = faults.calls("repair", fault)
    number = next(number for number, call in enumerate(calls, start=1) if call.endswith("/manifest.json"))
    assert faults.fail("repair", fault, number)["outcome"] == "raised"

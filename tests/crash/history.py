"""The changes that writers make, as a pure function of (seed, step), so that tests know every state in advance."""

from dataclasses import dataclass
from random import Random

from trilens.collection import Collection
from trilens.store import merge, writer
from trilens.text.document import Document

COMMON = "harbour"  # occurs in every document, so that one search finds them all
WORDS = ["amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "heath", "islet", "juniper", "kelp", "lagoon"]
IDS = [f"d{number}" for number in range(24)]
PASSAGES = {"words": 12, "overlap": 3}

State = dict[str, Document]


@dataclass(frozen=True, slots=True)
class Step:
    """The changes of one commit."""

    forgotten: list[Document]  # added and rolled back before everything else
    deletes: list[str]
    upserts: list[Document]
    adds: list[Document]
    optimize: bool
    retrain: bool  # only with optimize


class History:
    """The states of a collection: state 0 is empty, step n leads from state n to state n + 1."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._states: list[State] = [{}]
        self._steps: list[Step] = []

    def state(self, number: int) -> State:
        """All documents after this many commits."""
        while len(self._states) <= number:
            step = self._draw(len(self._steps))
            kept = {doc_id: doc for doc_id, doc in self._states[-1].items() if doc_id not in step.deletes}
            self._steps.append(step)
            self._states.append(kept | {doc.doc_id: doc for doc in step.upserts + step.adds})
        return self._states[number]

    def step(self, number: int) -> Step:
        """The step to the next state."""
        self.state(number + 1)
        return self._steps[number]

    def _draw(self, number: int) -> Step:
        random = Random(f"{self.seed} {number}")
        old = self._states[number]
        deletes = random.sample(sorted(old), random.randint(0, len(old) // 3))
        kept = sorted(old.keys() - deletes)
        free = sorted(set(IDS) - set(kept))
        new = random.sample(free, min(len(free), random.randint(1, 8)))
        changed = random.sample(kept, random.randint(0 if new else 1, len(kept) // 2))
        same = [old[doc_id] for doc_id in random.sample(kept, len(kept) // 4) if doc_id not in changed]
        return Step(
            forgotten=[_document(random, f"forgotten{i}", number) for i in range(random.choice([0, 0, 0, 5]))],
            deletes=deletes,
            upserts=[_document(random, doc_id, number) for doc_id in changed] + same,
            adds=[_document(random, doc_id, number) for doc_id in new],
            optimize=random.random() < 0.15,
            retrain=random.random() < 0.4,
        )


def _document(random: Random, doc_id: str, step: int) -> Document:
    """Never equal to an older one, so that every step changes something and makes a commit."""
    count = random.choice([0, 3, 6, 40])  # 40 words are several passages
    text = " ".join([COMMON, *random.choices(WORDS, k=count)])
    return Document(doc_id, text, random.choice(["", "On " + random.choice(WORDS)]), {"step": step})


def apply(collection: Collection, step: Step) -> None:
    """Make the changes of a step and commit them."""
    if step.forgotten:
        collection.add(step.forgotten)
        collection.rollback()
    collection.delete(step.deletes)
    collection.upsert(step.upserts)
    collection.add(step.adds)
    if step.optimize:
        collection.optimize(step.retrain)
    else:
        collection.commit()


def make_segments_small() -> None:
    """Let a few documents fill a buffer, and a few segments call for a merge."""
    writer.BUFFER_PASSAGES = 6
    merge.FANOUT = 3
    merge.SMALLEST = 8

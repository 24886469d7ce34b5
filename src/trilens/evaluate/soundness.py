"""What is odd about a dataset, counted and told, so that no number hides it."""

from dataclasses import asdict, dataclass

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.text.dataset import Split


@dataclass(frozen=True, slots=True)
class Soundness:
    """Counts, all 0 where data are in order.

    unjudged            queries with neither judgements nor answers; they are not asked
    nothing_relevant    queries whose judgements are all 0 or less; nothing can be found for them, and they count as zero
    missing_documents   judged documents that are not in the corpus
    missing_relevant    relevant ones among them; they count as not found
    without_answers     judged queries that have no answer, where others do; Hit@k is a mean over the others
    """

    unjudged: int
    nothing_relevant: int
    missing_documents: int
    missing_relevant: int
    without_answers: int

    def counts(self) -> dict[str, int]:
        """By name."""
        return asdict(self)

    def lines(self) -> list[str]:
        """One line for each count that is not 0."""
        told = {
            "unjudged": "queries have neither judgements nor answers: they are not asked",
            "nothing_relevant": "queries have no relevant document among their judgements: they count as zero",
            "missing_documents": f"judged documents are not in the corpus, {self.missing_relevant} of them relevant: "
            "these count as not found",
            "without_answers": "judged queries have no answers: Hit@k is a mean over the others",
        }
        return [f"{self.counts()[name]} {line}" for name, line in told.items() if self.counts()[name]]


def examine(split: Split, collection: Collection) -> Soundness:
    """Compare a split with the corpus. Nothing in common is an error: it is the corpus of something else."""
    relevant = {doc_id for judged in split.qrels.values() for doc_id, grade in judged.items() if grade > 0}
    judged = {doc_id for found in split.qrels.values() for doc_id in found}
    missing = {doc_id for doc_id in judged if collection.snapshot.key(doc_id) is None}
    if split.qrels and not relevant:
        raise BadInput(f"split {split.name!r} judges no document relevant; expected grades above 0: nothing can be measured")
    if relevant and relevant <= missing:
        raise BadInput(
            f"none of the {len(relevant)} relevant documents of split {split.name!r} is in the corpus, such as "
            f"{min(relevant)!r}; expected judgements of this corpus: check that the ids are the same"
        )
    return Soundness(
        unjudged=len(split.unjudged),
        nothing_relevant=sum(all(grade <= 0 for grade in found.values()) for found in split.qrels.values()),
        missing_documents=len(missing),
        missing_relevant=len(missing & relevant),
        without_answers=sum(not query.answers for query in split.queries.values()) if split.answered else 0,
    )

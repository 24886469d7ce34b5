"""Data checks of a split against the corpus: unjudged queries, missing documents and other causes of misleading measures."""

from dataclasses import asdict, dataclass

from trilens.collection import Collection
from trilens.datasets.dataset import Split
from trilens.errors import BadInput


@dataclass(frozen=True, slots=True)
class Soundness:
    """Counts of anomalies in a split; all are 0 for clean data.

    unjudged            queries with neither judgements nor answers; they are skipped
    nothing_relevant    queries without a relevant document; they count as zero
    missing_documents   judged documents that are not in the corpus
    missing_relevant    relevant documents among them; they count as not retrieved
    without_answers     judged queries without answers if other queries have some; Hit@k is averaged over the others
    """

    unjudged: int
    nothing_relevant: int
    missing_documents: int
    missing_relevant: int
    without_answers: int

    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)

    def lines(self) -> list[str]:
        """One warning for each count above 0."""
        warnings = {
            "unjudged": "queries have neither judgements nor answers: they are skipped",
            "nothing_relevant": "queries have no relevant document among their judgements: they count as zero",
            "missing_documents": f"judged documents are not in the corpus, {self.missing_relevant} of them relevant: "
            "these count as not retrieved",
            "without_answers": "judged queries have no answers: Hit@k is averaged over the others",
        }
        return [f"{self.counts()[name]} {warning}" for name, warning in warnings.items() if self.counts()[name]]


def examine(split: Split, collection: Collection) -> Soundness:
    """Check a split against the corpus; refuse it if no relevant document is in the corpus."""
    relevant = {doc_id for grades in split.qrels.values() for doc_id, grade in grades.items() if grade > 0}
    judged = {doc_id for grades in split.qrels.values() for doc_id in grades}
    missing = {doc_id for doc_id in judged if collection.snapshot.key(doc_id) is None}
    if split.qrels and not relevant:
        raise BadInput(f"split {split.name!r} judges no document relevant; expected grades above 0")
    if relevant and relevant <= missing:
        raise BadInput(
            f"none of the {len(relevant)} relevant documents of split {split.name!r} is in the corpus, such as "
            f"{min(relevant)!r}; expected qrels of this corpus: check that the document ids agree"
        )
    return Soundness(
        unjudged=len(split.unjudged),
        nothing_relevant=sum(all(grade <= 0 for grade in grades.values()) for grades in split.qrels.values()),
        missing_documents=len(missing),
        missing_relevant=len(missing & relevant),
        without_answers=sum(not query.answers for query in split.queries.values()) if split.answered else 0,
    )

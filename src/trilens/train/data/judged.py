"""A BEIR folder as examples: judged queries, with what is relevant to them as positives."""

from trilens.errors import BadInput
from trilens.text.beir import Beir
from trilens.text.decode import Place
from trilens.text.files import shown
from trilens.train.data.example import Example, Items


def read_judged(dataset: Beir, split: str, judged_negatives: bool = False) -> Items:
    """One example per query with a score above 0. `judged_negatives`: what was judged and found not relevant is a negative."""
    qrels = dataset.qrels(split)
    place = Place(shown(dataset.folder / "qrels" / f"{split}.tsv"))
    for query_id, text in dataset.queries(split).items():
        positives = [doc_id for doc_id, grade in qrels[query_id].items() if grade > 0]
        negatives = [doc_id for doc_id, grade in qrels[query_id].items() if grade <= 0] if judged_negatives else []
        if positives:
            yield place, Example(text, positives, negatives, query_id=query_id)
        else:
            yield BadInput(
                f"{place}: nothing is relevant to the query {query_id!r}; expected a score above 0, or skip bad examples"
            )

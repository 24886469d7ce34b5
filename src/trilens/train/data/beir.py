"""Reader of BEIR folders: each judged query is an example, its relevant documents are the positives."""

from trilens.datasets.beir import Beir
from trilens.errors import BadInput
from trilens.read.decode import Place
from trilens.text.files import shown
from trilens.train.data.raw_example import Items, RawExample


def read_beir(dataset: Beir, split: str, judged_negatives: bool = False) -> Items:
    """Yield one example per query with a relevant document; `judged_negatives` takes documents judged 0 as negatives."""
    qrels = dataset.qrels(split)
    place = Place(shown(dataset.folder / "qrels" / f"{split}.tsv"))
    for query_id, text in dataset.queries(split).items():
        positives = [doc_id for doc_id, grade in qrels[query_id].items() if grade > 0]
        negatives = [doc_id for doc_id, grade in qrels[query_id].items() if grade <= 0] if judged_negatives else []
        if positives:
            yield place, RawExample(text, positives, negatives, query_id=query_id)
        else:
            yield BadInput(
                f"{place}: the query {query_id!r} has no relevant document; expected a score above 0, or skip bad examples"
            )

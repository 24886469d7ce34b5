"""Why BM25 gave a document its score: the terms that it shares with the query, how often, how rare, in how long a passage."""

import numpy as np

from trilens.explain.explanation import Explanation, Part, with_rest
from trilens.explain.subject import Subject
from trilens.index.bm25 import Bm25Lens, Bm25Searcher
from trilens.text.analysis import Analyzer


def explain_counts(subject: Subject) -> Explanation:
    """One part for each term of the query that the passage holds, the largest first."""
    lens, searcher = subject.lenses[subject.lens], subject.snapshot.searcher(subject.lens)
    assert isinstance(lens, Bm25Lens) and isinstance(searcher, Bm25Searcher)
    analyzer = Analyzer(lens.config.analysis)
    asked = analyzer.places(subject.query)
    held = analyzer.places(subject.passage.text)
    found = searcher.terms(subject.encoded, 0, np.array([subject.row]))
    parts = []
    for number, word in enumerate(found.words):
        if not found.counts[number, 0]:
            continue
        places = [(start, end) for term, start, end in asked if term == word]
        parts.append(
            Part(
                label=subject.query[slice(*places[0])].lower() if places else word,
                score=float(found.scores[number, 0]),
                kind="own" if places else "expanded",
                query_span=places[0] if places else None,
                doc_spans=tuple((start, end) for term, start, end in held if term == word),
                facts={
                    "term": word,
                    "query_weight": float(found.in_query[number]),
                    "idf": float(found.idf[number]),
                    "tf": float(found.counts[number, 0]),
                    "length": float(found.lengths[0]),
                    "average_length": float(searcher.average_length),
                },
            )
        )
    parts.sort(key=lambda part: -part.score)
    score = subject.score or 0.0
    told = (subject.lens, subject.query, subject.doc_id, score, with_rest(parts, score))
    return Explanation(*told, approximate=False, passage=subject.passage)

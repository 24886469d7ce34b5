from trilens.search.hits import Hit, LensScore
from trilens.text.document import Document


def test_the_passage_is_cut_out_of_the_text() -> None:
    document = Document("d", "First. Second. Third.", title="Title")
    hit = Hit("d", 1, 2.5, document, {"bm25": LensScore(2.5, 1)}, 7, 14)
    assert hit.passage == "Second."

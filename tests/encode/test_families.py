import pytest

from trilens.encode.families import FAMILIES, UNKNOWN, family_of


@pytest.mark.parametrize(
    ("name", "family", "query_prefix", "doc_prefix", "pooling"),
    [
        ("thenlper/gte-small", "gte", "", "", "mean"),
        ("sentence-transformers/all-MiniLM-L6-v2", "minilm", "", "", "mean"),
        ("intfloat/e5-base-v2", "e5", "query: ", "passage: ", "mean"),
        ("intfloat/multilingual-e5-large", "multilingual-e5", "query: ", "passage: ", "mean"),
        ("BAAI/bge-m3", "bge-m3", "", "", "cls"),
        ("facebook/dpr-ctx_encoder-single-nq-base", "dpr", "", "", "cls"),
        ("BAAI/bge-small-en-v1.5", "bge-en", "Represent this sentence for searching relevant passages: ", "", "cls"),
    ],
)
def test_published_names(name: str, family: str, query_prefix: str, doc_prefix: str, pooling: str) -> None:
    found = family_of(name)
    assert (found.name, found.query_prefix, found.doc_prefix, found.pooling) == (
        family,
        query_prefix,
        doc_prefix,
        pooling,
    )


def test_instruct_models_take_an_instruction_and_plain_passages() -> None:
    found = family_of("intfloat/multilingual-e5-large-instruct")
    assert found.query_prefix.endswith("Query: ")
    assert found.doc_prefix == ""


def test_only_the_last_part_of_a_path_counts() -> None:
    assert family_of("/models/bge-m3/my-encoder").name == "unknown"
    assert family_of("/home/me/e5-small/").name == "e5"


def test_unknown_names_fall_back_to_no_prefix() -> None:
    assert family_of("my-own-model") is UNKNOWN
    assert family_of("") is UNKNOWN


def test_every_fragment_can_be_reached() -> None:
    for fragment, family in FAMILIES:
        assert family_of(f"org/x-{fragment}x").name == family.name


@pytest.mark.parametrize(
    ("name", "lengths", "dim", "normalised"),
    [
        ("colbert-ir/colbertv2.0", (32, 220), 128, True),
        ("google/xtr-base-en", (512, 512), 128, True),
        ("my/colxtr-onestage", (32, 180), 128, False),
        ("BAAI/bge-m3", (512, 8192), 1024, True),
    ],
)
def test_published_models_of_token_vectors(name: str, lengths: tuple[int, int], dim: int, normalised: bool) -> None:
    found = family_of(name)
    assert (found.max_query_tokens, found.max_doc_tokens) == lengths
    assert found.multi is not None
    assert (found.multi.dim, found.multi.normalised) == (dim, normalised)


def test_only_colbert_marks_and_fills() -> None:
    heads = {family.name: family.multi for _, family in FAMILIES if family.multi is not None}
    colbert = heads["colbertv2"]
    assert (colbert.query_marker, colbert.doc_marker) == ("[unused0]", "[unused1]")
    assert (colbert.query_tokens, colbert.mask_token, colbert.attend_to_mask) == (32, "[MASK]", False)
    assert colbert.skip_punctuation
    assert [name for name, head in heads.items() if head.query_tokens or head.query_marker] == ["colbertv2"]
    assert [name for name, head in heads.items() if head.skip_first] == ["bge-m3"]


def test_families_of_one_vector_have_no_multi_head() -> None:
    assert family_of("all-MiniLM-L6-v2").multi is None
    assert family_of("extractor").multi is None


@pytest.mark.parametrize("name", ["vsearch/vdr-nq", "vsearch/svdr-msmarco", "jzhoubu/sidr-nq"])
def test_published_models_over_the_vocabulary(name: str) -> None:
    found = family_of(name)
    assert (found.max_query_tokens, found.max_doc_tokens) == (128, 256)
    assert found.sparse is not None
    assert (found.sparse.dim, found.sparse.shift, found.sparse.top) == (30_522 - 999, 999, 768)
    assert not found.sparse.normalised
    assert found.lexical is None


def test_the_cross_modal_pair_has_words_of_its_own() -> None:
    assert family_of("vsearch/vdr-cross-modal").sparse is None


def test_bge_m3_weighs_the_tokens_of_its_vocabulary() -> None:
    found = family_of("BAAI/bge-m3")
    assert found.lexical is not None
    assert (found.lexical.dim, found.sparse) == (250_002, None)

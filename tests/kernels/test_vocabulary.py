from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.kernels.vocabulary import compare
from trilens.represent.vocabulary import pack

WORDS = st.text("aé東𝒳\x00", max_size=4) | st.text(max_size=4)


@settings(deadline=None)
@given(WORDS, WORDS)
def test_words_compare_as_their_bytes_do(first: str, second: str) -> None:
    letters, offsets = pack(["before", first])
    others, other_offsets = pack([second, "after"])
    order = compare(letters, offsets[1], offsets[2], others, other_offsets[0], other_offsets[1])
    assert order == (first.encode() > second.encode()) - (first.encode() < second.encode())

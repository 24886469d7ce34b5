"""BGE-M3 against plain torch."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from torch.nn.functional import normalize
from transformers import AutoModel

from tests.train import tiny
from trilens.errors import BadModel
from trilens.train.checkpoints import load_checkpoint

from .published import DIM, attended, bge_m3, drawn, outputs, same, states_of


def test_bge_m3(tmp_path: Path) -> None:
    multi, lexical = bge_m3(tmp_path)
    actual = outputs(load_checkpoint(tmp_path))
    plain = AutoModel.from_pretrained(tmp_path)
    for index in range(3):
        ids = attended(actual, index)
        states = states_of(plain, ids)
        same(actual["sentence_embedding"][index], normalize(states[0], dim=0))
        vectors = normalize(states[1:] @ multi["weight"].T + multi["bias"], dim=1)
        same(actual["multi"][index][actual["multi_mask"][index]], vectors)
        weights = torch.relu(states @ lexical["weight"][0] + lexical["bias"])
        expected = torch.zeros(actual["lexical"].shape[1])
        for id_, weight in zip(ids.tolist(), weights, strict=True):
            if id_ > 3:  # <s> <pad> </s> <unk>
                expected[id_] = max(expected[id_], weight)
        same(actual["lexical"][index], expected)


def test_incomplete_bge_m3(tmp_path: Path) -> None:
    bge_m3(tmp_path)
    torch.save({"weight": drawn(DIM, tiny.HIDDEN)}, tmp_path / "colbert_linear.pt")
    with pytest.raises(BadModel, match=r"colbert_linear.pt has no bias; expected weight, bias"):
        load_checkpoint(tmp_path)
    torch.save({"weight": drawn(DIM, 5), "bias": drawn(DIM)}, tmp_path / "colbert_linear.pt")
    with pytest.raises(BadModel, match=r"multi.linear.weight \(8, 5\) for \(8, 32\)"):
        load_checkpoint(tmp_path)
    (tmp_path / "colbert_linear.pt").unlink()
    with pytest.raises(BadModel, match=r"has no colbert_linear.pt; expected both"):
        load_checkpoint(tmp_path)

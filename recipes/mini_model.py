"""A torch model of an encoder and the heads of a model folder, with which `mini_distil.py` starts.

    git archive df7ffe553a src/trilens/models/trilens-mini | tar -x --strip-components 3 -C runs/mini
    python recipes/mini_model.py --backbone thenlper/gte-small --heads runs/mini/trilens-mini --to runs/mini/start

That commit has the heads that were trained on the states of the unmodified gte-small (`recipes/trilens-mini.yaml`, then
`recipes/mini_match.py`). Graphs store heads in float32, so the weights are exact. Needs `pip install 'trilens[train]'`.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from trilens.encode.folder import ModelDescription, ModelFolder
from trilens.train.build import build_model
from trilens.train.model import stacks_of

# Names of head weights in the graphs, which store transposed matrices.
MAIN = {
    "multi.linear.weight": "multi.weight",
    "multi.weigh.weight": "multi_weights.weight",
    "multi.weigh.bias": "multi_weights.bias",
    "lexical.linear.weight": "lexical.weight",
    "lexical.linear.bias": "lexical.bias",
}
SPARSE = {
    "sparse.norm.weight": "scale",
    "sparse.norm.bias": "shift",
    "sparse.transform.weight": "transform.weight",
    "sparse.transform.bias": "transform.bias",
    "sparse.bias": "bias",
}


def main() -> None:
    """Build the model and copy the heads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="thenlper/gte-small", help="folder or hub id")
    parser.add_argument("--heads", type=Path, required=True, help="model folder with the heads")
    parser.add_argument("--to", type=Path, required=True, help="output folder")
    options = parser.parse_args()
    folder = ModelFolder.open(options.heads)
    described = folder.config.model_dump(
        include=set(ModelDescription.model_fields) - {"heads"}, exclude_none=True, by_alias=True
    )
    model = build_model(options.backbone, folder.config.heads, changes=described)
    heads = stacks_of(model)["query"].heads
    weights = tensors(folder.weights, MAIN) | tensors(folder.sparse, SPARSE)
    lacking = heads.load_state_dict(weights, strict=True)
    assert not lacking.missing_keys and not lacking.unexpected_keys
    model.save_pretrained(str(options.to), create_model_card=False)


def tensors(graph: Path, names: dict[str, str]) -> dict[str, torch.Tensor]:
    """Weights of a graph under their names in the heads."""
    stored = {tensor.name: tensor for tensor in onnx.load(str(graph), load_external_data=False).graph.initializer}
    arrays = {name: numpy_helper.to_array(stored[graph_name]) for name, graph_name in names.items()}
    return {name: torch.from_numpy(np.ascontiguousarray(array.T)) for name, array in arrays.items()}


if __name__ == "__main__":
    main()

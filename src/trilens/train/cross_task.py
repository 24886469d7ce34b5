"""The training task of a cross-encoder: pairs of a query with its positive and negatives, and how well it ranks them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import ir_measures
import numpy as np
import torch
from ir_measures import RR, Success, nDCG
from sentence_transformers import CrossEncoder
from torch import Tensor

from trilens.encode.onnx import batches_by_length
from trilens.errors import BadInput
from trilens.kernels.array_types import Float32s, Int64s
from trilens.train.contrastive_task import CHARACTERS_PER_TOKEN, make_sampler
from trilens.train.cross_model import PairReader, max_tokens
from trilens.train.cross_objectives import CrossLoss
from trilens.train.data.examples import Examples
from trilens.train.data.mixture import Mixture
from trilens.train.encoder import BATCH_TOKENS, BATCH_TOKENS_ELSEWHERE, at_rest
from trilens.train.grad_cache import Features
from trilens.train.negatives.samplers import MixedSampler
from trilens.train.recipe import CrossSection, Recipe
from trilens.train.step_inputs import DrawnGroups, Teacher
from trilens.train.teacher import make_teacher
from trilens.train.trainer import DevEvaluator, TrainingTask

CANDIDATES = 20  # passages that a dev question is measured on: its own, and random ones
MEASURES = (nDCG @ 10, RR @ 10, Success @ 1)
METRIC_NAMES = {str(measure): str(measure).replace("Success@", "Hit@") for measure in MEASURES}


def cross_task(recipe: Recipe, cross: CrossSection, model: CrossEncoder, data: Mixture, folder: Path) -> TrainingTask:
    """The task of a recipe with `cross`. Pairs have no in-batch negatives, so any examples may share a step."""
    loss, seed = CrossLoss(model, cross.objectives), recipe.run.seed
    samplers = [
        (make_sampler(recipe, place, model, data.examples, folder), source.count)
        for place, source in enumerate(recipe.negatives)
    ]
    negatives = MixedSampler(data.examples, samplers, seed)
    inputs = CrossInputs(data.examples, PairReader(model, cross), negatives, seed, make_teacher(recipe.teacher))
    lengths = pair_lengths(data.examples, max_tokens(model, cross))
    return TrainingTask(loss, inputs, data.order, lengths, None, [])


class CrossInputs(DrawnGroups):
    """Each query of a step with its positive and its negatives as pairs, and teacher scores if there are any."""

    def __init__(
        self,
        examples: Examples,
        reader: PairReader,
        negatives: MixedSampler,
        seed: int,
        teacher: Teacher | None = None,
    ) -> None:
        super().__init__(examples, negatives, seed, teacher)
        self._reader = reader

    def sides(self, keys: Tensor) -> tuple[list[Features], Tensor | None]:
        """A single side: all pairs of the step, those of each query together, and the number of them per query."""
        queries, docs, scores = self.drawn(keys)
        inputs = self._reader.read([(query, doc) for query, group in zip(queries, docs, strict=True) for doc in group])
        features = self._reader.padded(inputs, np.arange(len(inputs.ids)))
        side: Features = {name: tensor.to(keys.device) for name, tensor in features.items()}
        return [side | {"group": torch.tensor(len(docs[0]))}], scores


def pair_lengths(examples: Examples, longest: int) -> Int64s:
    """Estimated tokens of the longest pair of each example."""
    sizes = [
        len(examples.query(example)) + max(len(examples.passage(int(number))) for number in examples.positives(example))
        for example in range(len(examples))
    ]
    return np.minimum(np.array(sizes, np.int64) // CHARACTERS_PER_TOKEN + 3, longest)


def cross_evaluator(recipe: Recipe, cross: CrossSection, model: CrossEncoder, held_out: Examples) -> DevEvaluator:
    """Measures how a model ranks the passages of held-out questions: relevant ones, negatives, and random others."""
    if not len(held_out):
        raise BadInput("there are no dev examples; expected at least one: raise dev.hold_out, or give dev.source")
    if recipe.dev.measure not in METRIC_NAMES.values():
        raise BadInput(f"dev.measure is {recipe.dev.measure!r}; expected one of {sorted(METRIC_NAMES.values())}")
    questions = [_candidates(held_out, example, recipe.run.seed) for example in range(len(held_out))]
    reader = PairReader(model, cross)
    return DevEvaluator(lambda trained: cross_metrics(trained, reader, held_out, questions), f"cross:{recipe.dev.measure}")


def _candidates(examples: Examples, example: int, seed: int) -> Int64s:
    """The relevant passages of a question, its negatives, and random passages up to `CANDIDATES`."""
    own = [*examples.positives(example).tolist(), *examples.negatives(example).tolist()]
    twins = set(examples.twins(example).tolist())
    drawn = np.random.default_rng([seed, example]).permutation(examples.passage_count)[: 2 * CANDIDATES].tolist()
    others = [number for number in drawn if int(examples.passages.same[number]) not in twins]
    return np.array(list(dict.fromkeys([*own, *others]))[: max(CANDIDATES, len(own))], np.int64)


def cross_metrics(
    model: CrossEncoder, reader: PairReader, examples: Examples, candidates: Sequence[Int64s]
) -> dict[str, float]:
    """Values by `cross:metric`, over the candidates of every question. Candidates with equal scores rank as if drawn last."""
    pairs = [
        (examples.query(example), examples.passage(int(number)))
        for example, numbers in enumerate(candidates)
        for number in numbers
    ]
    scores = iter(score_pairs(model, reader, pairs).tolist())
    run, qrels = {}, {}
    for example, numbers in enumerate(candidates):
        relevant = set(examples.positives(example).tolist())
        # Negatives first: a model that gives all passages the same score finds nothing.
        order = sorted(
            ((next(scores), number) for number in numbers.tolist()), key=lambda pair: (-pair[0], pair[1] in relevant)
        )
        run[str(example)] = {str(number): -float(rank) for rank, (_, number) in enumerate(order)}
        qrels[str(example)] = {str(number): 1 for number in relevant}
    values = ir_measures.calc_aggregate(MEASURES, qrels, run)
    return {f"cross:{METRIC_NAMES[str(measure)]}": float(values[measure]) for measure in MEASURES}


def score_pairs(model: CrossEncoder, reader: PairReader, pairs: list[tuple[str, str]]) -> Float32s:
    """The scores of pairs by a model in training, without dropout and gradients."""
    inputs, scores = reader.read(pairs), np.empty(len(pairs), np.float32)
    device = next(model.parameters()).device
    size = BATCH_TOKENS.get(device.type, BATCH_TOKENS_ELSEWHERE)
    forward: Callable[[Features], Features] = model
    with at_rest(model):
        for batch in batches_by_length([len(row) for row in inputs.ids], size, len(pairs)):
            features = {name: tensor.to(device) for name, tensor in reader.padded(inputs, batch).items()}
            scores[batch] = forward(features)["scores"].reshape(-1).float().cpu().numpy()
    return scores

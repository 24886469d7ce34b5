"""Terms that everyday sentences activate in the bundled model, for inspection by people.

    ./scripts/bench words
    ./scripts/bench words --model models/mine

The sentences were not selected by the output of any model; keep them unchanged.
"""

import argparse
import hashlib

from benchmarks.record import record
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.explain.disentangle import disentangle
from trilens.store.config import DEFAULT_MODEL

TOP = 12
SENTENCES = (
    "My back hurts when I sit at the desk all day.",
    "How long does it take to boil an egg?",
    "The train to London was late again this morning.",
    "She won the gold medal in swimming.",
    "Which vitamins are good for your skin?",
    "The bank raised its interest rates.",
    "We sat on the bank of the river and fished.",
    "Can my landlord keep the deposit?",
    "The dog barked at the mailman.",
    "It rained so much that the cellar was flooded.",
    "He repaired his bicycle in the garage.",
    "What causes high blood pressure?",
    "The children built a snowman in the garden.",
    "Remove a folder and everything inside it.",
    "The senator lost the election by a few votes.",
    "Our flight was cancelled because of the storm.",
    "How do plants make food from sunlight?",
    "The orchestra played a symphony by Beethoven.",
    "I forgot the password of my laptop.",
    "The recipe needs two cups of flour and some butter.",
)


def main() -> None:
    """Record one row per sentence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="bundled model or model folder")
    options = parser.parse_args()
    encoder = OnnxEncoder(resolve_model(options.model), threads=1)
    data = hashlib.blake2b("\n".join(SENTENCES).encode(), digest_size=8).hexdigest()
    for sentence in SENTENCES:
        words = disentangle(encoder, sentence, top=TOP)
        record(
            "words",
            data=data,
            threads=1,
            seed=None,
            repeats=1,
            model=encoder.fingerprint,
            sentence=sentence,
            own=[word.word for word in words if word.own],
            added=[word.word for word in words if not word.own],
        )


if __name__ == "__main__":
    main()

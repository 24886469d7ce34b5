"""Fits the `multi` head of a trained trilens-mini to matching tokens of questions and passages.

    python recipes/mini_match.py --questions runs/mini/questions.jsonl --model runs/mini/train/model --to runs/mini/model

`--questions` is the output of `mini_data.py`. The head is fitted to its first questions, which are full sentences (SQuAD,
MedQuAD); including the titles after them lowered dev metrics. Needs `pip install 'trilens[train]'` and takes six minutes on one
core.
"""

import argparse
import json
from pathlib import Path

from trilens.errors import TrilensError
from trilens.train.data.passages import joined_text
from trilens.train.fitting import fit_matches
from trilens.train.model import load_model

MATCHED, OTHERS = 6000, 1500  # questions, and passages of all sources for the spread of tokens


def main() -> None:
    """Fit the head and save the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=Path, required=True, help="questions with their passages, in DPR's format")
    parser.add_argument("--model", type=Path, required=True, help="folder of the trained model")
    parser.add_argument("--to", type=Path, required=True, help="folder of the model with the fitted head")
    options = parser.parse_args()
    try:
        with options.questions.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        examples = [(row["question"], row["positive_ctxs"][0]) for row in rows]
        pairs = [(question, joined_text(passage["title"], passage["text"])) for question, passage in examples]
        if not pairs:
            raise ValueError("the file is empty")
    except (OSError, ValueError, LookupError, TypeError) as error:
        parser.error(f"--questions is {options.questions} ({error!r}); expected the questions.jsonl of mini_data.py")
    passages = [passage for _, passage in pairs]
    try:
        model = load_model(options.model)
    except TrilensError as error:
        parser.error(str(error))
    fit_matches(model, pairs[:MATCHED], passages[:: max(1, len(passages) // OTHERS)])
    model.save_pretrained(str(options.to), create_model_card=False)


if __name__ == "__main__":
    main()

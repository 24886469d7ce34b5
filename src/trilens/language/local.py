"""Language models that run in this process: a folder of transformers, or a GGUF file."""

from contextlib import redirect_stderr
from functools import lru_cache
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import Any

from trilens.errors import BadModel
from trilens.extras import needs_extra

_ONE_AT_A_TIME = Lock()


@lru_cache(maxsize=1)
def load(path: Path) -> tuple[Any, Any]:
    """The tokenizer and the model of a path."""
    with needs_extra("llm"):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging
    if path.is_file():
        with needs_extra("llm"):
            import gguf  # noqa: F401  # read by transformers
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    place, options = (path.parent, {"gguf_file": path.name}) if path.is_file() else (path, {})
    try:
        with redirect_stderr(StringIO()):  # progress bars that ignore the line above
            tokenizer = AutoTokenizer.from_pretrained(str(place), local_files_only=True, **options)
            model = AutoModelForCausalLM.from_pretrained(str(place), local_files_only=True, dtype=torch.float32, **options)
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        reason = " ".join(str(error).split())[:200]
        expected = "a causal language model: a folder or a GGUF file"
        raise BadModel(f"{path} cannot be loaded ({reason}); expected {expected}") from error
    return tokenizer, model.eval()


def write(path: Path, prompt: str, max_tokens: int) -> str:
    """What the model writes, always its most likely continuation; a model for chats answers the prompt."""
    tokenizer, model = load(path)
    if tokenizer.chat_template:
        said = [{"role": "user", "content": prompt}]
        prompt = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
    inputs = tokenizer(prompt, return_tensors="pt", add_special_tokens=not tokenizer.chat_template)
    longest = getattr(model.config, "max_position_embeddings", None)
    count = inputs["input_ids"].shape[1]
    if longest and count + max_tokens > longest:
        raise BadModel(f"the prompt has {count} tokens and {path} takes {longest - max_tokens}; expected a shorter text")
    with _ONE_AT_A_TIME:
        made = model.generate(
            **inputs, max_new_tokens=max_tokens, do_sample=False, pad_token_id=tokenizer.pad_token_id or tokenizer.eos_token_id
        )
    return str(tokenizer.decode(made[0, count:], skip_special_tokens=True)).strip()

"""Published checkpoints: `load_checkpoint` recognises them by their files and makes trainable models of them."""

from trilens.train.checkpoints.loading import load_checkpoint

__all__ = ["load_checkpoint"]

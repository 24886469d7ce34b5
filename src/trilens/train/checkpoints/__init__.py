"""Loaders of published checkpoints: `load_checkpoint` recognises them by their files and builds trainable models."""

from trilens.train.checkpoints.loading import load_checkpoint

__all__ = ["load_checkpoint"]

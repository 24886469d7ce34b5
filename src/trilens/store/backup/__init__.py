"""Backups of collections: commits as small records beside the immutable folders that they share."""

"""Everyday questions over three collections that can be built on every Debian machine."""

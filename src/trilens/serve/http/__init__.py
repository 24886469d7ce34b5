"""The service: collections over HTTP."""

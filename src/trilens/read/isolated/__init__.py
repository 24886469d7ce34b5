"""Formats that a child process parses, with a deadline and limited memory: third-party and native parsers, archives, XML."""

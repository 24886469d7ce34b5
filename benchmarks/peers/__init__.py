"""Contenders of benchmarks/multi.py, each a module that runs in a process, and maybe an environment, of its own."""

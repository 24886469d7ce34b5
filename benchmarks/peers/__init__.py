"""Contenders of the benchmarks. Each module runs in a separate process and, for peers, in a separate environment."""

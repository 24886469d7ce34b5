"""A comparison as Markdown: tables that can be pasted where people discuss them."""

from collections.abc import Sequence

from trilens.evaluate.comparison import Comparison
from trilens.evaluate.examples import Example
from trilens.evaluate.verdict import method, notes, verdict
from trilens.explain.sheet import brief

LONGEST_QUERY = 80
MOST_GAINS = 5


def to_markdown(comparison: Comparison, examples: Sequence[Example], title: str) -> str:
    """Verdict, means, pairs, and the queries that differ most."""
    measures = comparison.measures
    means = [[name, *(f"{comparison.mean(name, measure):.4f}" for measure in measures)] for name in comparison.ranking]
    pairs = [
        [
            pair.measure,
            f"{pair.first} − {pair.second}",
            f"{pair.difference:+.4f}",
            f"{pair.low:+.4f} … {pair.high:+.4f}",
            f"{pair.wins} / {pair.ties} / {pair.losses}",
            f"{pair.p:.4f}",
            f"{pair.p_holm:.4f}" + (" *" if pair.significant else ""),
        ]
        for pair in comparison.pairs
    ]
    pieces = [
        f"# {_safe(title)}",
        _safe(" ".join(verdict(comparison))),
        *(f"- {_safe(note)}" for note in notes(comparison)),
        _table(["run", *measures], means, 1),
        _table(
            ["measure", "difference", "mean", "95 % interval", "wins / ties / losses", "p", "p, Holm (* below 0.05)"], pairs, 2
        ),
        _safe(method(comparison)),
    ]
    if examples:
        pieces += [f"## The queries that differ most by {measures[0]}", _examples(comparison, examples)]
        pieces += [line for example in examples for line in _reasons(example)]
    return "\n\n".join(pieces) + "\n"


def _examples(comparison: Comparison, examples: Sequence[Example]) -> str:
    rows = [
        [
            example.query_id,
            brief(example.query or "", LONGEST_QUERY),
            *(f"{example.values[name]:.3f}" for name in comparison.names),
            f"{example.doc_id}: {', '.join(str(example.ranks[name] or 'not returned') for name in comparison.names)}",
        ]
        for example in examples
    ]
    return _table(["query", "", *comparison.names, "relevant document: ranks"], rows, 2)


def _reasons(example: Example) -> list[str]:
    if not example.whys:
        return []
    against = f" against {example.rival}" if example.rival else ""
    lines = [f"**{_safe(example.query_id)}**, {_safe(example.doc_id + against)}:"]
    for why in example.whys:
        told = ", ".join(f"{_safe(word)} {gain:+.3f}" for word, gain in why.gains[:MOST_GAINS])
        lines.append(f"- {_safe(why.lens)}: {told}")
    return ["\n".join(lines)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> str:
    """The first columns hold words, the others numbers."""
    lines = [[_safe(cell) for cell in row] for row in (head, *rows)]
    rule = ["---" if place < words else "---:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def _safe(text: str) -> str:
    """Text that breaks no table, starts no HTML and keeps to its line."""
    line = " ".join(text.split())
    for character in "\\`*_[]<|":
        line = line.replace(character, f"\\{character}")
    return line

"""A comparison of runs as Markdown: verdict, tables and example queries."""

from collections.abc import Sequence

from trilens.evaluate.comparison import Comparison
from trilens.evaluate.examples import QueryExample, Reason
from trilens.evaluate.verdict import method, notes, verdict
from trilens.explain.sheet import brief

LONGEST_QUERY = 80
MOST_GAINS = 5


def to_markdown(comparison: Comparison, examples: Sequence[QueryExample], title: str) -> str:
    """Verdict, means, pairwise comparisons, and the queries with the largest differences."""
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
        _table(["measure", "runs", "mean difference", "95 % CI", "wins / ties / losses", "p", "p, Holm (* < 0.05)"], pairs, 2),
        _safe(method(comparison)),
    ]
    if examples:
        pieces += [f"## Queries with the largest differences in {measures[0]}", _examples(comparison, examples)]
        pieces += [line for example in examples for line in _reasons(example)]
    return "\n\n".join(pieces) + "\n"


def _examples(comparison: Comparison, examples: Sequence[QueryExample]) -> str:
    rows = [
        [
            example.query_id,
            brief(example.query or "", LONGEST_QUERY),
            *(f"{example.values[name]:.3f}" for name in comparison.names),
            f"{example.doc_id}: {', '.join(str(example.ranks[name] or 'not retrieved') for name in comparison.names)}",
        ]
        for example in examples
    ]
    return _table(["query", "text", *comparison.names, "relevant document: ranks"], rows, 2)


def _reasons(example: QueryExample) -> list[str]:
    if not example.reasons:
        return []
    against = f" against {example.rival}" if example.rival else ""
    lines = [f"**{_safe(example.query_id)}**, {_safe(example.doc_id + against)}:"]
    return ["\n".join([*lines, *(f"- {_safe(reason.lens)}: {_gains(reason)}" for reason in example.reasons)])]


def _gains(reason: Reason) -> str:
    return ", ".join(f"{_safe(word)} {gain:+.3f}" for word, gain in reason.gains[:MOST_GAINS])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int) -> str:
    """A table whose first columns hold text; the others hold right-aligned numbers."""
    lines = [[_safe(cell) for cell in row] for row in (head, *rows)]
    rule = ["---" if column < text_columns else "---:" for column in range(len(head))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def _safe(text: str) -> str:
    """Escape Markdown and HTML markup and put the text on one line."""
    line = " ".join(text.split())
    for character in "\\`*_[]<|":
        line = line.replace(character, f"\\{character}")
    return line

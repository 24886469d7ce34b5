"""An explanation as a self-contained HTML page: coloured passages, tables of parts, heat maps."""

from collections.abc import Sequence

from trilens.explain.explanation import Explanation
from trilens.explain.sheet import coloured_passage, ground, safe, sheet
from trilens.lenses.parts import Matrix, Part

MOST_PARTS = 60


def to_html(explanation: Explanation) -> str:
    """The whole page."""
    title = f"{explanation.doc_id}: {explanation.query}"
    body = [_section(single) for single in (explanation, *(explanation.children or ()))]
    head = f"<h1>Why <q>{safe(explanation.query)}</q> finds <code>{safe(explanation.doc_id)}</code></h1>"
    return sheet(title, head + "".join(body))


def _section(explanation: Explanation) -> str:
    note = f'<span class="dim">{safe(explanation.note)}</span>' if explanation.note else ""
    pieces = [f"<h2>{safe(explanation.lens)}: {explanation.score:.4f}{note}</h2>"]
    if explanation.expansion:
        pieces.append(f'<p class="dim">expanded: {safe(str(dict(explanation.expansion)))}</p>')
    if not explanation.children:
        pieces.append(f'<p class="passage">{coloured_passage(explanation)}</p>')
    pieces.append(_table(explanation.parts))
    if explanation.matrix:
        pieces.append(_matrix(explanation.matrix))
    return "".join(pieces)


def _table(parts: Sequence[Part]) -> str:
    most = max((abs(part.score) for part in parts), default=1.0) or 1.0
    shown = sorted(parts, key=lambda part: -abs(part.score))[:MOST_PARTS]
    rows = [_row(part, most) for part in shown]
    if len(shown) < len(parts):
        left = sum(part.score for part in parts) - sum(part.score for part in shown)
        rows.append(f'<tr><td>{len(parts) - len(shown)} more</td><td></td><td class="number">{left:.4f}</td></tr>')
    total = sum(part.score for part in parts)
    foot = f'<tr><th>sum</th><th></th><td class="number"><b>{total:.4f}</b></td></tr>'
    return f"<table><tr><th>part</th><th></th><th>score</th><th></th><th></th></tr>{''.join(rows)}{foot}</table>"


def _row(part: Part, most: float) -> str:
    facts = ", ".join(f"{name.replace('_', ' ')} {_figure(value)}" for name, value in part.facts.items())
    target = f"→ {safe(part.target)}" if part.target is not None else part.kind
    bar = f'<span class="bar{" minus" if part.score < 0 else ""}" style="width:{8 * abs(part.score) / most:.2f}rem"></span>'
    return (
        f'<tr><td>{safe(part.label)}</td><td class="dim">{target}</td><td class="number">{part.score:.4f}</td>'
        f'<td>{bar}</td><td class="dim">{safe(facts)}</td></tr>'
    )


def _matrix(matrix: Matrix) -> str:
    head = "".join(f"<th>{safe(token)}</th>" for token in matrix.doc_tokens)
    rows = []
    most = float(abs(matrix.values).max(initial=1e-9))
    for token, values in zip(matrix.query_tokens, matrix.values.tolist(), strict=True):
        cells = "".join(f'<td style="background:{ground(value / most)}">{value:.2f}</td>' for value in values)
        rows.append(f"<tr><th>{safe(token)}</th>{cells}</tr>")
    return f'<div class="scroll"><table class="map"><tr><th></th>{head}</tr>{"".join(rows)}</table></div>'


def _figure(value: float | str | None) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.4g}"

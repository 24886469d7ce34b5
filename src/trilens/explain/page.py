"""An explanation as one HTML file that needs nothing else: coloured passages, tables of parts, heat maps.

Everything that comes from a query or a document is escaped, and a content policy forbids scripts and the network.
"""

import html
from collections.abc import Sequence

from trilens.explain.explanation import Explanation, Matrix, Part, heat

MOST_PARTS = 60
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2rem}
.passage{white-space:pre-wrap;border-left:3px solid #ccc;padding:.5rem 1rem}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.15rem .6rem;text-align:left;border-bottom:1px solid #eee}
td.number{text-align:right;font-variant-numeric:tabular-nums}.dim{color:#666}
.bar{display:inline-block;height:.7rem;background:#1f5fa8;vertical-align:middle}.bar.minus{background:#c0392b}
.scroll{overflow-x:auto}.map td{padding:.15rem .3rem;font-size:.75rem;text-align:center}
.map th{font-size:.75rem;font-weight:normal}
"""


def to_html(explanation: Explanation) -> str:
    """The whole page."""
    title = f"{explanation.doc_id}: {explanation.query}"
    body = [_section(one) for one in (explanation, *(explanation.children or ()))]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<meta name="viewport" content="width=device-width"><title>{_safe(title)}</title><style>{STYLE}</style></head><body>'
        f"<h1>Why <q>{_safe(explanation.query)}</q> finds <code>{_safe(explanation.doc_id)}</code></h1>"
        f"{''.join(body)}</body></html>\n"
    )


def _section(one: Explanation) -> str:
    note = ' <span class="dim">(approximate: measured from outside)</span>' if one.approximate else ""
    pieces = [f"<h2>{_safe(one.lens)}: {one.score:.4f}{note}</h2>"]
    if one.expansion:
        pieces.append(f'<p class="dim">expanded: {_safe(str(dict(one.expansion)))}</p>')
    if not one.children:
        pieces.append(f'<p class="passage">{_passage(one)}</p>')
    pieces.append(_table(one.parts))
    if one.matrix:
        pieces.append(_matrix(one.matrix))
    return "".join(pieces)


def _passage(one: Explanation) -> str:
    stretches = heat(one)
    most = max((abs(value) for _, _, value in stretches), default=1.0) or 1.0
    pieces, at = [], 0
    for start, end, value in stretches:
        text = _safe(one.passage.text[start:end])
        pieces.append(_safe(one.passage.text[at:start]))
        pieces.append(f'<mark style="background:{_colour(value / most)}" title="{value:.4f}">{text}</mark>')
        at = end
    return "".join([*pieces, _safe(one.passage.text[at:])])


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
    target = f"→ {_safe(part.target)}" if part.target is not None else part.kind
    bar = f'<span class="bar{" minus" if part.score < 0 else ""}" style="width:{8 * abs(part.score) / most:.2f}rem"></span>'
    return (
        f'<tr><td>{_safe(part.label)}</td><td class="dim">{target}</td><td class="number">{part.score:.4f}</td>'
        f'<td>{bar}</td><td class="dim">{_safe(facts)}</td></tr>'
    )


def _matrix(matrix: Matrix) -> str:
    head = "".join(f"<th>{_safe(token)}</th>" for token in matrix.doc_tokens)
    rows = []
    most = float(abs(matrix.values).max(initial=1e-9))
    for token, values in zip(matrix.query_tokens, matrix.values.tolist(), strict=True):
        cells = "".join(f'<td style="background:{_colour(value / most)}">{value:.2f}</td>' for value in values)
        rows.append(f"<tr><th>{_safe(token)}</th>{cells}</tr>")
    return f'<div class="scroll"><table class="map"><tr><th></th>{head}</tr>{"".join(rows)}</table></div>'


def _colour(share: float) -> str:
    """From white to blue, or to red below zero."""
    red, green, blue = (31, 95, 168) if share >= 0 else (192, 57, 43)
    return f"rgba({red},{green},{blue},{min(1.0, abs(share)) * 0.6:.3f})"


def _figure(value: float | str | None) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.4g}"


def _safe(text: str) -> str:
    return html.escape(text, quote=True)

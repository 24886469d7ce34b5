"""Self-contained HTML pages: one head, one style for light and dark, and passages coloured by their contribution to a score.

Everything that comes from a query or a document is escaped, and a content security policy forbids scripts and network access.
"""

import html

from trilens.explain.explanation import Explanation
from trilens.lenses.registry import lens_types

# The colours are those of the web page.
LIGHT = """color-scheme:light dark;--ground:#f7f7f5;--surface:#fff;--line:#e4e3df;--text:#1d1f23;--soft:#5b6068;
--plus:31 95 168;--minus:192 57 43;--good:#12805c;
--other-0:#c2410c;--other-1:#0369a1;--other-2:#a21caf;--other-3:#4d7c0f;--other-4:#be123c"""
DARK = """--ground:#131519;--surface:#1b1e24;--line:#2f343d;--text:#e9eaec;--soft:#a2a8b2;--plus:110 160 240;--minus:240 110 95;
--good:#4cc79a;--other-0:#fb923c;--other-1:#7dd3fc;--other-2:#e879f9;--other-3:#bef264;--other-4:#fda4af"""
STYLE = """
*{box-sizing:border-box}
body{font:15px/1.55 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:var(--text);
background:var(--ground);overflow-wrap:break-word}
h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.2rem;margin-top:2.4rem}h3{font-size:1rem;margin:1.8rem 0 .3rem}
.passage{white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid var(--line);padding:.5rem 1rem}
mark{color:inherit;border-radius:3px}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .6rem;text-align:left;border-bottom:1px solid var(--line)}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.dim{color:var(--soft)}
.bar{display:inline-block;height:.7rem;background:rgb(var(--plus));vertical-align:middle}.bar.minus{background:rgb(var(--minus))}
.scroll{overflow-x:auto}.map td{padding:.15rem .3rem;font-size:.75rem;text-align:center}
.map th{font-size:.75rem;font-weight:normal}
a{color:inherit}code{font-family:ui-monospace,monospace;font-size:.9em;overflow-wrap:anywhere}
"""


def sheet(title: str, body: str, style: str = "") -> str:
    """A complete page; `body` is HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{safe(title)}</title><style>{_colours()}{STYLE}{style}</style></head><body>{body}</body></html>\n"
    )


def _colours() -> str:
    types = lens_types().values()
    light = ";".join([LIGHT, *(f"--lens-{known.name}:{known.colour.light}" for known in types)])
    dark = ";".join([DARK, *(f"--lens-{known.name}:{known.colour.dark}" for known in types)])
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def safe(text: str) -> str:
    """Text as HTML, also within quotes."""
    return html.escape(text, quote=True)


def ground(share: float) -> str:
    """A background colour: transparent to blue for 0 to 1, to red for 0 to -1."""
    return f"rgb(var(--{'plus' if share >= 0 else 'minus'})/{min(1.0, abs(share)) * 0.6:.3f})"


def coloured_passage(explanation: Explanation) -> str:
    """The passage; words with a larger contribution have a stronger background."""
    stretches, text = explanation.heat(), explanation.passage.text
    largest = max((abs(value) for _, _, value in stretches), default=1.0) or 1.0
    pieces, position = [], 0
    for start, end, value in stretches:
        pieces.append(safe(text[position:start]))
        pieces.append(f'<mark style="background:{ground(value / largest)}" title="{value:.4f}">{safe(text[start:end])}</mark>')
        position = end
    return "".join([*pieces, safe(text[position:])])


def lens_colour(name: str, place: int) -> str:
    """The colour of a lens, also of one with search parameters; any other name gets a colour by its place among the others."""
    lens = name.partition(":")[0]
    return f"var(--lens-{lens})" if lens in lens_types() else f"var(--other-{place % 5})"


def brief(text: str, length: int) -> str:
    """The text on one line of at most `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"

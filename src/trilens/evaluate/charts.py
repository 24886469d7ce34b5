"""Charts as SVG inside a page: what quality costs, two runs query by query, and differences with their intervals.

Colours are variables of the page, so that a chart follows it into the dark.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trilens.evaluate.comparison import Pair
from trilens.evaluate.significance import TIE, Values
from trilens.explain.sheet import brief, safe

WIDTH, HEIGHT = 420.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 10.0, 44.0
SQUARE = 300.0
LARGEST = 1.6  # times its own size, where there is room: letters of a chart should not be larger than those around it
LETTER = 6.4  # width of an average letter of a label
LINE = 15.0
NEAR = 4.0
LONGEST = 34
STYLE = """
.chart{display:block;width:100%;height:auto;font-size:12px}.chart text{fill:var(--text)}.chart .soft{fill:var(--soft)}
.chart .grid{stroke:var(--line)}.chart .edge{stroke:var(--soft);stroke-dasharray:4 4;fill:none;opacity:.7}
.chart .halo{paint-order:stroke;stroke:var(--surface);stroke-width:3px;stroke-linejoin:round}
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One way to search: what it costs and how good it is."""

    name: str
    x: float
    y: float
    colour: str


def trade_off(points: Sequence[Point], x_label: str, y_label: str) -> str:
    """Quality against cost, on a scale on which every step to the right costs ten times as much.

    The dashed line joins those that nothing beats in both.
    """
    low, high = _stretched([point.x for point in points])
    bottom, top, ticks = _scale([point.y for point in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low) / (high - low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - (y - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM)

    pieces = [_line(*place(10**low, tick), *place(10**high, tick), "grid") for tick in ticks]
    pieces += [_text(LEFT - 7, place(1, tick)[1] + 4, _tick(tick), "end", "soft") for tick in ticks]
    for tick in _powers(low, high):
        pieces.append(_line(*place(tick, bottom), *place(tick, top), "grid"))
        pieces.append(_text(place(tick, bottom)[0], HEIGHT - BOTTOM + 17, _tick(tick), "middle", "soft"))
    pieces += _axis_labels(x_label, y_label)
    edge = [place(point.x, point.y) for point in _frontier(points)]
    if len(edge) > 1:
        pieces.append(f'<path class="edge" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in edge)}"/>')
    spots = [place(point.x, point.y) for point in points]
    for point, (x, y) in zip(points, spots, strict=True):
        told = safe(f"{point.name}: {y_label} {point.y:.4f}, {_tick(point.x)} {x_label}")
        pieces.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" style="fill:{point.colour}"><title>{told}</title></circle>')
    pieces += [_text(x, y, name, anchor, "halo") for name, x, y, anchor in _labels([point.name for point in points], spots)]
    return _svg(WIDTH, HEIGHT, f"{y_label} against {x_label}", pieces)


def query_by_query(first: Values, second: Values, names: tuple[str, str], colours: tuple[str, str]) -> str:
    """Every query as a point: across its value in the first run, up in the second; the larger, the more queries share it."""
    most = max(1.0, float(first.max(initial=0.0)), float(second.max(initial=0.0)))
    start, size = 44.0, SQUARE - 44.0 - 12.0

    def place(x: float, y: float) -> tuple[float, float]:
        return start + x / most * size, 12.0 + size - y / most * size

    pieces = [_line(*place(0, tick * most), *place(most, tick * most), "grid") for tick in (0, 0.5, 1)]
    pieces += [_line(*place(tick * most, 0), *place(tick * most, most), "grid") for tick in (0, 0.5, 1)]
    for tick in (0.0, 0.5, 1.0):
        pieces.append(_text(start - 6, place(0, tick * most)[1] + 4, _tick(tick * most), "end", "soft"))
        pieces.append(_text(place(tick * most, 0)[0], 12 + size + 15, _tick(tick * most), "middle", "soft"))
    pieces.append(f'<path class="edge" d="M{start} {12 + size} L{start + size} 12"/>')
    shared = Counter(zip(first.round(2).tolist(), second.round(2).tolist(), strict=True))
    for (x, y), count in shared.items():
        colour = colours[0] if x > y + TIE else colours[1] if y > x + TIE else "var(--soft)"
        across, up = place(x, y)
        radius = min(16.0, 3.2 * math.sqrt(count))
        told = f"{count} {'query' if count == 1 else 'queries'}: {x:.2f}, {y:.2f}"
        pieces.append(
            f'<circle cx="{across:.1f}" cy="{up:.1f}" r="{radius:.1f}" style="fill:{colour};fill-opacity:.5;stroke:{colour}">'
            f"<title>{told}</title></circle>"
        )
    pieces.append(_text(start + size / 2, SQUARE + 2, f"{brief(names[0], 34)} →", "middle", ""))
    pieces.append(_upright(12, 12 + size / 2, f"{brief(names[1], 34)} →"))
    return _svg(SQUARE, SQUARE + 10, f"{names[1]} against {names[0]}, query by query", pieces)


def intervals(pairs: Sequence[Pair]) -> str:
    """The mean difference of every pair with its interval; one that holds no zero is drawn in colour."""
    edge, row, foot = 12.0, 40.0, 30.0
    reach = max((abs(end) for pair in pairs for end in (pair.low, pair.high, pair.difference)), default=0.0) or 1.0
    height = row * len(pairs) + foot

    def place(value: float) -> float:
        return WIDTH / 2 + value / reach * (WIDTH / 2 - edge)

    pieces = [_line(place(share * reach), 2, place(share * reach), height - foot + 6, "grid") for share in (-1, -0.5, 0.5, 1)]
    pieces.append(_line(place(0), 2, place(0), height - foot + 6, "edge"))
    for value, anchor in ((-reach, "start"), (0.0, "middle"), (reach, "end")):
        pieces.append(_text(place(value), height - 8, f"{value:+.3f}" if value else "equal", anchor, "soft"))
    for number, pair in enumerate(pairs):
        y = row * number + 28
        ink = "var(--soft)" if not pair.significant else "rgb(var(--plus))" if pair.difference > 0 else "rgb(var(--minus))"
        told = safe(f"{pair.difference:+.4f}, from {pair.low:+.4f} to {pair.high:+.4f}")
        pieces.append(_text(edge, y - 12, f"{brief(pair.first, LONGEST)} − {brief(pair.second, LONGEST)}", "start", "halo"))
        pieces.append(
            f'<g style="stroke:{ink};fill:{ink}"><title>{told}</title>'
            f'<path d="M{place(pair.low):.1f} {y:.1f} H{place(pair.high):.1f}" stroke-width="3" stroke-linecap="round"/>'
            f'<circle cx="{place(pair.difference):.1f}" cy="{y:.1f}" r="5"/></g>'
        )
    return _svg(WIDTH, height, "mean differences with their 95 % intervals", pieces)


def _frontier(points: Sequence[Point]) -> list[Point]:
    """Those that no cheaper one equals, from the cheapest on."""
    found: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not found or point.y > found[-1].y:
            found.append(point)
    return found


def _stretched(values: Sequence[float]) -> tuple[float, float]:
    """Logarithms of a range a little wider than the values."""
    low, high = math.log10(min(values)), math.log10(max(values))
    room = max(0.12 * (high - low), 0.25)
    return low - room, high + room


def _powers(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten within a range of logarithms; powers alone where there are many."""
    steps = (1.0, 2.0, 5.0) if high - low < 2.2 else (1.0,)
    values = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    return [value for value in values if low <= math.log10(value) <= high]


def _scale(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """A range a little wider than the values, and round numbers in it."""
    low, high = min(values), max(values)
    room = max(0.15 * (high - low), 0.01)
    low, high = low - room, high + room
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(step * part for part in (1.0, 0.5, 0.2, 0.1) if (high - low) / (step * part) >= 3)
    first = math.ceil(low / step)
    return low, high, [number * step for number in range(first, math.floor(high / step) + 1)]


def _labels(names: Sequence[str], spots: Sequence[tuple[float, float]]) -> list[tuple[str, float, float, str]]:
    """Names and where they stand: beside their points, and on nothing else. Points on one spot have one label."""
    shared: dict[tuple[float, float], list[str]] = {}
    for name, (x, y) in zip(names, spots, strict=True):
        near = next((spot for spot in shared if math.dist(spot, (x, y)) < NEAR), (x, y))
        shared.setdefault(near, []).append(name)
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in spots]
    found = []
    for (x, y), together in shared.items():
        label = brief(" = ".join(together), LONGEST)
        choices = [
            (x + side * 11, y + 4 + lift, "start" if side > 0 else "end" if side < 0 else "middle")
            for lift in (0.0, -LINE, LINE, -2 * LINE, 2 * LINE, -3 * LINE, 3 * LINE)
            for side in ((1, -1) if not lift else (0, 1, -1))
        ]
        boxes = [_box(*choice, LETTER * len(label)) for choice in choices]
        inside = [number for number, box in enumerate(boxes) if _inside(box)]
        free = [number for number in inside if not _meets(boxes[number], taken)]
        chosen = (free or inside or [0])[0]
        taken.append(boxes[chosen])
        found.append((label, *choices[chosen]))
    return found


def _inside(box: tuple[float, float, float, float]) -> bool:
    return box[0] > LEFT and box[2] < WIDTH and box[1] > TOP - 8 and box[3] < HEIGHT - BOTTOM


def _box(x: float, y: float, anchor: str, width: float) -> tuple[float, float, float, float]:
    left = x if anchor == "start" else x - width if anchor == "end" else x - width / 2
    return left, y - 11, left + width, y + 3


def _meets(box: tuple[float, float, float, float], others: Sequence[tuple[float, float, float, float]]) -> bool:
    return any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in others)


def _axis_labels(x_label: str, y_label: str) -> list[str]:
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [_text(middle, HEIGHT - 8, f"{x_label} →", "middle", ""), _upright(13, (TOP + HEIGHT - BOTTOM) / 2, f"{y_label} →")]


def _tick(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe(text)}</text>'


def _upright(x: float, y: float, text: str) -> str:
    return f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)" text-anchor="middle">{safe(text)}</text>'


def _svg(width: float, height: float, title: str, pieces: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{safe(title)}" '
        f'style="max-width:{LARGEST * width:.0f}px">'
        f"{''.join(pieces)}</svg>"
    )

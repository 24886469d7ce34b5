"""SVG charts for HTML reports: quality against cost, per-query scatter plots, and differences with confidence intervals.

Colours are CSS variables of the page, so charts follow its light or dark theme.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trilens.evaluate.comparison import RunPair
from trilens.evaluate.significance import TIE
from trilens.explain.sheet import brief, safe
from trilens.kernels.array_types import Float64s

WIDTH, HEIGHT = 420.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 10.0, 44.0
SQUARE = 300.0
MAX_SCALE = 1.6  # enlarging a chart further would make its labels larger than the text of the page
LETTER = 6.4  # mean width of a character of a label
LINE = 15.0  # line height of labels
NEAR = 4.0  # points closer than this share a label
LABEL_LENGTH = 34

Box = tuple[float, float, float, float]
"""left, top, right, bottom"""

STYLE = """
.chart{display:block;width:100%;height:auto;font-size:12px}.chart text{fill:var(--text)}.chart .soft{fill:var(--soft)}
.chart .grid{stroke:var(--line)}.chart .edge{stroke:var(--soft);stroke-dasharray:4 4;fill:none;opacity:.7}
.chart .halo{paint-order:stroke;stroke:var(--surface);stroke-width:3px;stroke-linejoin:round}
"""


@dataclass(frozen=True, slots=True)
class Point:
    """A search variant in a trade-off chart: its cost `x`, which must be positive, and its quality `y`."""

    name: str
    x: float
    y: float
    colour: str


def trade_off(points: Sequence[Point], x_label: str, y_label: str) -> str:
    """Scatter plot of quality against cost on a logarithmic x axis; the dashed line is the Pareto frontier."""
    low, high = _log_range([point.x for point in points])
    bottom, top, ticks = _linear_range([point.y for point in points])

    def place(x: float, y: float) -> tuple[float, float]:
        x_share, y_share = (math.log10(x) - low) / (high - low), (y - bottom) / (top - bottom)
        return LEFT + x_share * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y_share * (HEIGHT - TOP - BOTTOM)

    pieces = [_line(*place(10**low, tick), *place(10**high, tick), "grid") for tick in ticks]
    pieces += [_text(LEFT - 7, place(1, tick)[1] + 4, _tick(tick), "end", "soft") for tick in ticks]
    for tick in _log_ticks(low, high):
        pieces.append(_line(*place(tick, bottom), *place(tick, top), "grid"))
        pieces.append(_text(place(tick, bottom)[0], HEIGHT - BOTTOM + 17, _tick(tick), "middle", "soft"))
    pieces += _axis_labels(x_label, y_label)
    frontier = [place(point.x, point.y) for point in _frontier(points)]
    if len(frontier) > 1:
        pieces.append(f'<path class="edge" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in frontier)}"/>')
    centres = [place(point.x, point.y) for point in points]
    for point, (x, y) in zip(points, centres, strict=True):
        tooltip = safe(f"{point.name}: {y_label} {point.y:.4f}, {_tick(point.x)} {x_label}")
        pieces.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" style="fill:{point.colour}"><title>{tooltip}</title></circle>')
    labels = _labels([point.name for point in points], centres)
    pieces += [_text(x, y, label, anchor, "halo") for label, x, y, anchor in labels]
    return _svg(WIDTH, HEIGHT, f"{y_label} against {x_label}", pieces)


def per_query_scatter(first: Float64s, second: Float64s, names: tuple[str, str], colours: tuple[str, str]) -> str:
    """Scatter plot of per-query values: first run on x, second on y; the area of a point is its number of queries."""
    highest = max(1.0, float(first.max(initial=0.0)), float(second.max(initial=0.0)))
    start, size = 44.0, SQUARE - 44.0 - 12.0

    def place(x: float, y: float) -> tuple[float, float]:
        return start + x / highest * size, 12.0 + size - y / highest * size

    pieces = [_line(*place(0, tick * highest), *place(highest, tick * highest), "grid") for tick in (0, 0.5, 1)]
    pieces += [_line(*place(tick * highest, 0), *place(tick * highest, highest), "grid") for tick in (0, 0.5, 1)]
    for tick in (0.0, 0.5, 1.0):
        pieces.append(_text(start - 6, place(0, tick * highest)[1] + 4, _tick(tick * highest), "end", "soft"))
        pieces.append(_text(place(tick * highest, 0)[0], 12 + size + 15, _tick(tick * highest), "middle", "soft"))
    pieces.append(f'<path class="edge" d="M{start} {12 + size} L{start + size} 12"/>')
    counts = Counter(zip(first.round(2).tolist(), second.round(2).tolist(), strict=True))
    for (x, y), count in counts.items():
        colour = colours[0] if x > y + TIE else colours[1] if y > x + TIE else "var(--soft)"
        cx, cy = place(x, y)
        radius = min(16.0, 3.2 * math.sqrt(count))
        tooltip = f"{count} {'query' if count == 1 else 'queries'}: {x:.2f}, {y:.2f}"
        pieces.append(
            f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="{radius:.1f}" style="fill:{colour};fill-opacity:.5;stroke:{colour}">'
            f"<title>{tooltip}</title></circle>"
        )
    pieces.append(_text(start + size / 2, SQUARE + 2, f"{brief(names[0], LABEL_LENGTH)} →", "middle", ""))
    pieces.append(_vertical_text(12, 12 + size / 2, f"{brief(names[1], LABEL_LENGTH)} →"))
    return _svg(SQUARE, SQUARE + 10, f"per-query values of {names[1]} against {names[0]}", pieces)


def intervals(pairs: Sequence[RunPair]) -> str:
    """Forest plot: mean difference of each pair with its confidence interval; significant differences are coloured."""
    margin, row, foot = 12.0, 40.0, 30.0
    reach = max((abs(end) for pair in pairs for end in (pair.low, pair.high, pair.difference)), default=0.0) or 1.0
    height = row * len(pairs) + foot

    def place(value: float) -> float:
        return WIDTH / 2 + value / reach * (WIDTH / 2 - margin)

    pieces = [_line(place(share * reach), 2, place(share * reach), height - foot + 6, "grid") for share in (-1, -0.5, 0.5, 1)]
    pieces.append(_line(place(0), 2, place(0), height - foot + 6, "edge"))
    for value, anchor in ((-reach, "start"), (0.0, "middle"), (reach, "end")):
        pieces.append(_text(place(value), height - 8, f"{value:+.3f}" if value else "0", anchor, "soft"))
    for index, pair in enumerate(pairs):
        y = row * index + 28
        colour = "var(--soft)" if not pair.significant else "rgb(var(--plus))" if pair.difference > 0 else "rgb(var(--minus))"
        tooltip = safe(f"{pair.difference:+.4f}, 95 % CI {pair.low:+.4f} to {pair.high:+.4f}")
        label = f"{brief(pair.first, LABEL_LENGTH)} − {brief(pair.second, LABEL_LENGTH)}"
        pieces.append(_text(margin, y - 12, label, "start", "halo"))
        pieces.append(
            f'<g style="stroke:{colour};fill:{colour}"><title>{tooltip}</title>'
            f'<path d="M{place(pair.low):.1f} {y:.1f} H{place(pair.high):.1f}" stroke-width="3" stroke-linecap="round"/>'
            f'<circle cx="{place(pair.difference):.1f}" cy="{y:.1f}" r="5"/></g>'
        )
    return _svg(WIDTH, height, "mean differences with 95 % confidence intervals", pieces)


def _frontier(points: Sequence[Point]) -> list[Point]:
    """Pareto frontier: points that are better than every cheaper point, by ascending cost."""
    frontier: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not frontier or point.y > frontier[-1].y:
            frontier.append(point)
    return frontier


def _log_range(values: Sequence[float]) -> tuple[float, float]:
    """Range of the decimal logarithms of the values, with padding."""
    low, high = math.log10(min(values)), math.log10(max(values))
    padding = max(0.12 * (high - low), 0.25)
    return low - padding, high + padding


def _log_ticks(low: float, high: float) -> list[float]:
    """Ticks at 1, 2 and 5 times powers of ten within a range of logarithms; only powers of ten if the range is wide."""
    steps = (1.0, 2.0, 5.0) if high - low < 2.2 else (1.0,)
    values = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    return [value for value in values if low <= math.log10(value) <= high]


def _linear_range(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """Range of the values with padding, and ticks at round numbers."""
    low, high = min(values), max(values)
    padding = max(0.15 * (high - low), 0.01)
    low, high = low - padding, high + padding
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(step * part for part in (1.0, 0.5, 0.2, 0.1) if (high - low) / (step * part) >= 3)
    first = math.ceil(low / step)
    return low, high, [number * step for number in range(first, math.floor(high / step) + 1)]


def _labels(names: Sequence[str], centres: Sequence[tuple[float, float]]) -> list[tuple[str, float, float, str]]:
    """Labels with their position and anchor, placed next to their points without overlaps. Coincident points share a label."""
    clusters: dict[tuple[float, float], list[str]] = {}
    for name, (x, y) in zip(names, centres, strict=True):
        centre = next((other for other in clusters if math.dist(other, (x, y)) < NEAR), (x, y))
        clusters.setdefault(centre, []).append(name)
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in centres]
    labels = []
    for (x, y), cluster in clusters.items():
        label = brief(" = ".join(cluster), LABEL_LENGTH)
        positions = [
            (x + side * 11, y + 4 + lift, "start" if side > 0 else "end" if side < 0 else "middle")
            for lift in (0.0, -LINE, LINE, -2 * LINE, 2 * LINE, -3 * LINE, 3 * LINE)
            for side in ((1, -1) if not lift else (0, 1, -1))
        ]
        boxes = [_box(*position, LETTER * len(label)) for position in positions]
        inside = [index for index, box in enumerate(boxes) if _inside(box)]
        free = [index for index in inside if not _overlaps(boxes[index], taken)]
        best = (free or inside or [0])[0]
        taken.append(boxes[best])
        labels.append((label, *positions[best]))
    return labels


def _inside(box: Box) -> bool:
    return box[0] > LEFT and box[2] < WIDTH and box[1] > TOP - 8 and box[3] < HEIGHT - BOTTOM


def _box(x: float, y: float, anchor: str, width: float) -> Box:
    """Bounding box of a label."""
    left = x if anchor == "start" else x - width if anchor == "end" else x - width / 2
    return left, y - 11, left + width, y + 3


def _overlaps(box: Box, others: Sequence[Box]) -> bool:
    return any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in others)


def _axis_labels(x_label: str, y_label: str) -> list[str]:
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [
        _text(middle, HEIGHT - 8, f"{x_label} →", "middle", ""),
        _vertical_text(13, (TOP + HEIGHT - BOTTOM) / 2, f"{y_label} →"),
    ]


def _tick(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe(text)}</text>'


def _vertical_text(x: float, y: float, text: str) -> str:
    return f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)" text-anchor="middle">{safe(text)}</text>'


def _svg(width: float, height: float, title: str, pieces: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{safe(title)}" '
        f'style="max-width:{MAX_SCALE * width:.0f}px">'
        f"{''.join(pieces)}</svg>"
    )

"""A bar chart of the shares for which more is better. It is SVG, which Markdown shows and no library has to draw."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from afterword.evaluation.report.scorecard import LABELS
from afterword.evaluation.results import Result

SHOWN = (
    "fact_recall",
    "current_recall",
    "precision",
    "update_correct",
    "retracted_gone",
    "kind_correct",
    "evidence_ok",
)
COLOURS = ("#1b6ca8", "#e08e0b", "#8a8a8a", "#6b4fa0")
LEFT, WIDTH, BAR, GAP, TOP, RIGHT = 230, 420, 14, 14, 56, 70
FONT = 'font-family="system-ui, sans-serif" font-size="12"'


def chart(results: Sequence[Result]) -> str:
    """Return the chart of the results, one colour for each. A share of 0 facts has no bar."""
    group = len(results) * BAR + GAP
    height = TOP + len(SHOWN) * group + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" role="img" {FONT}>',
        "<title>How good it is: more is better</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *_legend(results),
    ]
    for place, name in enumerate(SHOWN):
        top = TOP + place * group
        label = escape(LABELS[name])
        middle = top + len(results) * BAR / 2 + 4
        parts.append(f'<text x="{LEFT - 8}" y="{middle:g}" text-anchor="end" fill="#222222">{label}</text>')
        for number, result in enumerate(results):
            parts += _bar(top + number * BAR, result.total.shares[name].ratio, _colour(number))
    return "\n".join([*parts, "</svg>", ""])


def _legend(results: Sequence[Result]) -> list[str]:
    parts = []
    for number, result in enumerate(results):
        left = LEFT + number * (WIDTH + RIGHT) // len(results)
        parts.append(f'<rect x="{left}" y="18" width="10" height="10" fill="{_colour(number)}"/>')
        parts.append(f'<text x="{left + 15}" y="27" fill="#222222">{escape(result.name)}</text>')
    return parts


def _bar(top: int, share: float | None, colour: str) -> list[str]:
    width = round((share or 0) * WIDTH)
    text = "-" if share is None else f"{share:.2f}"
    return [
        f'<rect x="{LEFT}" y="{top}" width="{width}" height="{BAR - 2}" fill="{colour}"/>',
        f'<text x="{LEFT + width + 5}" y="{top + BAR - 4}" fill="#222222">{text}</text>',
    ]


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]

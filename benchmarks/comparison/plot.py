"""Grouped bars as SVG, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, ROW, GAP = 900, 260, 90, 70, 13, 12
COLORS = ("#2b6cb0", "#63b3ed", "#c05621", "#a0aec0")


def bar_plot(title: str, unit: str, groups: Sequence[str], series: Mapping[str, Mapping[str, float]]) -> str:
    """Returns bars for each group, one for each series with a value; the scale is logarithmic."""
    values = [value for of in series.values() for value in of.values() if value > 0]
    if not values:
        return '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>\n'
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    block = ROW * len(series) + GAP
    height = TOP + block * len(groups) + 30
    scale = (WIDTH - LEFT - RIGHT) / (high - low)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>',
    ]
    for number, name in enumerate(series):
        x: float = LEFT + number * 150
        parts.append(f'<rect x="{x}" y="32" width="10" height="10" fill="{COLORS[number % len(COLORS)]}"/>')
        parts.append(f'<text x="{x + 14}" y="41">{escape(name)}</text>')
    for power in range(low, high + 1):
        x = LEFT + (power - low) * scale
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - 24}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle">{10.0**power:,g} {escape(unit)}</text>')
    for index, group in enumerate(groups):
        top = TOP + index * block
        middle = top + ROW * len(series) / 2 + 4
        parts.append(f'<text x="{LEFT - 8}" y="{middle:.1f}" text-anchor="end">{escape(group)}</text>')
        for number, of in enumerate(series.values()):
            value = of.get(group, 0.0)
            if value <= 0:
                continue
            length = max(1.0, (math.log10(value) - low) * scale)
            y = top + number * ROW
            color = COLORS[number % len(COLORS)]
            parts.append(
                f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{ROW - 2}" fill="{color}"><title>'
                f"{escape(group)}: {value:,.1f} {escape(unit)}</title></rect>"
            )
            parts.append(f'<text x="{LEFT + length + 4:.1f}" y="{y + ROW - 4}" font-size="9">{value:,.0f}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"

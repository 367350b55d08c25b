"""Small line charts as inline SVG: no script, no network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

_WIDTH, _HEIGHT, _TOP = 360, 90, 20


def line_chart(
    title: str, values: Sequence[float | None], shown: Callable[[float], str], *, highest: float | None = None
) -> Markup:
    """The values from left to right, evenly spaced; None leaves a gap. `highest` sets the scale (1 for shares)."""
    known = [value for value in values if value is not None]
    top = highest if highest is not None else max(known, default=0.0)
    last = shown(known[-1]) if known else "no data yet"
    caption = Markup("<figcaption>{}<b>{}</b></figcaption>").format(title, last)
    label = f"{title}: {last} now, {shown(top)} at the top"
    drawing = Markup(
        '<svg viewBox="0 0 {w} {h}" role="img" aria-label="{label}"><line x1="0" y1="{base}" x2="{w}" y2="{base}"'
        ' class="axis"/>{lines}<text x="2" y="14">{top}</text></svg>'
    ).format(w=_WIDTH, h=_HEIGHT, label=label, base=_HEIGHT - 1, lines=_lines(values, top), top=shown(top))
    return Markup("<figure>{}{}</figure>").format(caption, drawing)


def _lines(values: Sequence[float | None], top: float) -> Markup:
    step = _WIDTH / max(1, len(values) - 1)
    drawn: list[list[str]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            drawn.append([])
            continue
        height = (_HEIGHT - _TOP) * (min(value / top, 1.0) if top > 0 else 0.0)
        drawn[-1].append(f"{place * step:.1f},{_HEIGHT - 1 - height:.1f}")
    lines = Markup("")
    for points in drawn:
        if len(points) == 1:
            x, y = points[0].split(",")
            lines += Markup('<circle cx="{}" cy="{}" r="1.5"/>').format(x, y)
        elif points:
            lines += Markup('<polyline points="{}"/>').format(" ".join(points))
    return lines


def share_bar(share: float) -> Markup:
    """A bar that is filled to this share, from 0 to 1."""
    width = round(100 * max(0.0, min(1.0, share)), 1)
    return Markup(
        '<svg viewBox="0 0 100 8" class="bar" role="img" aria-label="{w} percent" preserveAspectRatio="none">'
        '<rect width="100" height="8" class="empty"/><rect width="{w}" height="8"/></svg>'
    ).format(w=width)

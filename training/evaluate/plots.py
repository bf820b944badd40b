"""Small SVG plots for the card, without a plotting library."""

WIDTH, HEIGHT, MARGIN = 420, 300, 46
COLOURS = ("#3366cc", "#cc5533", "#888888")
Points = list[tuple[float, float]]


def plot(title: str, across: str, up: str, lines: dict[str, Points]) -> str:
    """Returns an SVG of lines over the unit square; each line's colour follows from its place in the dict."""
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {box}>', f"<title>{title}</title>"]
    parts += [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *axes(across, up)]
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{MARGIN + 12}" y="{22 + 15 * number}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def x_of(x: float) -> float:
    """Returns the horizontal position of a share."""
    return MARGIN + x * (WIDTH - MARGIN - 14)


def y_of(y: float) -> float:
    """Returns the vertical position of a share, from the top."""
    return HEIGHT - MARGIN + 8 - y * (HEIGHT - MARGIN - 2)


def axes(across: str, up: str) -> list[str]:
    """Returns a grid with its figures, and the labels of the axes."""
    parts = []
    for tenth in range(0, 11, 2):
        at = tenth / 10
        lines = f"M{x_of(at):.1f} {y_of(0):.1f}V{y_of(1):.1f}M{x_of(0):.1f} {y_of(at):.1f}H{x_of(1):.1f}"
        parts.append(f'<path d="{lines}" stroke="#ddd"/>')
        parts.append(f'<text x="{x_of(at):.1f}" y="{y_of(0) + 14:.1f}" text-anchor="middle">{at:g}</text>')
        parts.append(f'<text x="{x_of(0) - 6:.1f}" y="{y_of(at) + 4:.1f}" text-anchor="end">{at:g}</text>')
    parts.append(f'<text x="{x_of(0.5):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{across}</text>')
    parts.append(f'<text transform="translate(12 {y_of(0.5):.1f}) rotate(-90)" text-anchor="middle">{up}</text>')
    return parts

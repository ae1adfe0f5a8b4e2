"""Measuring of an SVG diagram: no text overlaps another, and none is outside the picture."""

from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def assert_no_overlap(picture: str) -> None:
    """Expect every text of a picture to have its own place."""
    root = ET.fromstring(picture)
    boxes = sorted(map(box, root.iter(f"{SVG}text")))
    for number, (_, bottom, left, right, text) in enumerate(boxes):
        assert 0 <= left <= right <= float(root.get("width", "0")), text
        for other_top, _, other_left, other_right, other in boxes[number + 1 :]:
            assert other_top >= bottom or other_left >= right or left >= other_right, (text, other)


def box(element: ET.Element) -> tuple[float, float, float, float, str]:
    """Measure a text of 12 px: top, bottom, left and right."""
    x, y, width = (float(element.get(name, "0")) for name in ("x", "y", "textLength"))
    left = x - {"middle": width / 2, "end": width}.get(element.get("text-anchor", ""), 0)
    return y - 9, y + 3, left, left + width, element.text or ""

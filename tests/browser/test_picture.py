"""The picture of the page in docs/images is what the script draws today, as far as the letters of this machine allow."""

from base64 import b64encode
from pathlib import Path

from docs.draw import HERE, shoot
from tests.browser.conftest import Look

MAX_SHARE = 0.03
"""Of all pixels so many may differ: another version of Chromium sets letters otherwise. A page that was changed differs in more."""

DIFFERING = """async ([one, other]) => {
    const pixels = async (data) => {
        const picture = new Image()
        picture.src = "data:image/png;base64," + data
        await picture.decode()
        const canvas = new OffscreenCanvas(picture.width, picture.height)
        const context = canvas.getContext("2d")
        context.drawImage(picture, 0, 0)
        return context.getImageData(0, 0, picture.width, picture.height)
    }
    const [a, b] = [await pixels(one), await pixels(other)]
    if (a.width !== b.width || a.height !== b.height) return 1
    let count = 0
    for (let at = 0; at < a.data.length; at += 4)
        if ([0, 1, 2].some((colour) => Math.abs(a.data[at + colour] - b.data[at + colour]) > 32)) count++
    return count / (a.width * a.height)
}"""


def test_the_picture_of_the_page_is_current(look: Look, tmp_path: Path) -> None:
    now = tmp_path / "page.png"
    view = look().page
    shoot(view, tmp_path, now)
    pictures = [b64encode(path.read_bytes()).decode() for path in (HERE / "images" / "page.png", now)]
    share = view.evaluate(DIFFERING, pictures)
    assert share <= MAX_SHARE, f"{share:.1%} of it differ: python -m docs.draw --page"

"""Sessions of 20, 200 and 2,000 calls in the real Mermaid: all of it is drawn, within its limits, and notes hold their texts."""

import pytest

from mcpspy.views.sequence.diagram import Arrow, flat
from mcpspy.views.sequence.layout import Drawing, diagram
from mcpspy.views.sequence.mermaid import MAX_TEXT_LETTERS, fitting, mermaid
from tests.browser.conftest import Look
from tests.conftest import NPM_MODULES, MermaidReader
from tests.views.scenes import busy_scene, ticket_session

DRAW = """async (text) => {
  const { svg } = await mermaid.render("drawing", text);
  document.body.innerHTML = svg;
  const inside = (rect, text) => {
    const [outer, inner] = [rect.getBoundingClientRect(), text.getBoundingClientRect()];
    return inner.left >= outer.left - 1 && inner.right <= outer.right + 1 && inner.bottom <= outer.bottom + 1;
  };
  return {
    messages: document.querySelectorAll(".messageText").length,
    loops: document.querySelectorAll(".loopText").length,
    outside: [...document.querySelectorAll("rect.note")].flatMap((note) =>
      [...note.parentNode.querySelectorAll(".noteText")].filter((text) => !inside(note, text)).map((text) => text.textContent)),
  };
}"""


@pytest.mark.parametrize(
    ("size", "drawing"), [(20, Drawing()), (200, Drawing()), (2_000, Drawing()), (2_000, Drawing(folds=False))]
)
def test_mermaid_draws_each_message_of_a_session(look: Look, read_mermaid: MermaidReader, size: int, drawing: Drawing) -> None:
    assert read_mermaid([]) == []
    transcript = ticket_session(size).transcript
    layout = fitting(diagram(transcript, transcript.rows, drawing))
    text = "\n".join(mermaid(layout)) + "\n"
    assert len(text) <= MAX_TEXT_LETTERS
    seen = drawn(look, text)
    assert seen["messages"] == sum(isinstance(step, Arrow) for step in flat(layout.steps))
    assert seen["outside"] == []
    assert bool(seen["loops"]) == (drawing.folds is None and size > 20)


def test_notes_hold_their_texts(look: Look, read_mermaid: MermaidReader) -> None:
    assert read_mermaid([]) == []
    scene = busy_scene().stderr(b"panic: something went wrong in a place of which nobody had ever thought before\n").exits(1)
    transcript = scene.transcript
    assert drawn(look, "\n".join(mermaid(diagram(transcript, transcript.rows))))["outside"] == []


def drawn(look: Look, text: str) -> dict[str, object]:
    """Have Mermaid draw a text, and count what it drew."""
    page = look().page
    page.add_script_tag(path=NPM_MODULES / "mermaid/dist/mermaid.min.js")
    page.evaluate("mermaid.initialize({ startOnLoad: false })")
    seen: dict[str, object] = page.evaluate(DRAW, text)
    return seen

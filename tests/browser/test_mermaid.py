"""Mermaid in a real browser, where it reads titles too, which its parser alone does not: what is drawn is what was meant."""

from mcpspy.views.sequence.diagram import Arrow, ArrowKind, Diagram, Participant
from tests.browser.conftest import Look
from tests.conftest import NPM_MODULES, MermaidReader
from tests.views.sequence.test_mermaid import HOSTILE, meant, text_of

DRAW = """async (texts) => {
  const all = [];
  for (const text of texts) {
    const { svg } = await mermaid.render("drawing", text);
    const drawn = new DOMParser().parseFromString(svg, "text/html");
    all.push([[...drawn.querySelectorAll("text")].map((one) => one.textContent), drawn.querySelectorAll("script, img, a").length]);
  }
  return all;
}"""


def test_titles_are_drawn_as_words_and_nothing_else_is(look: Look, read_mermaid: MermaidReader) -> None:
    assert read_mermaid([]) == []
    steps = [Arrow(at_ns=0, start="p0", end="p0", kind=ArrowKind.REQUEST, text="m")]
    titles = [text[:100] for text in HOSTILE if meant(text[:100]).strip()]
    layouts = [Diagram(title=title, participants=[Participant(id="p0", name="a")], steps=steps) for title in titles]
    page = look().page
    page.add_script_tag(path=NPM_MODULES / "mermaid/dist/mermaid.min.js")
    page.evaluate("mermaid.initialize({ startOnLoad: false })")
    for title, (texts, others) in zip(titles, page.evaluate(DRAW, [text_of(layout) for layout in layouts]), strict=True):
        assert others == 0, title
        assert meant(title).replace("\xa0", " ") in [text.replace("\xa0", " ") for text in texts], title

"""The layout of the page at two widths in two schemes: what stands where, in steps that another font does not change."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Look
from tests.browser.test_page import written
from tests.browser.test_web import live
from tests.conftest import ROOT
from tests.views.golden import same_as_golden
from tests.views.scenes import busy_scene, three_servers

SEEN = """() => {
  const seen = (element) => element.checkVisibility() && element.getBoundingClientRect().width > 1;
  const third = (part, whole) => ["upper", "middle", "lower"][Math.min(2, Math.floor((3 * part) / whole))];
  const name = (element) => element.getAttribute("aria-label") || element.textContent.trim();
  const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
  const line = document.querySelector(".line").getBoundingClientRect();
  return [
    `heading: ${all(".summary")[0].textContent}`,
    ...all("#worst li").map((one) => one.textContent),
    `above: ${all("header > *:not(.summary), .overview, .tools").map((one) => one.id || one.className).join(", ")}`,
    `tabs: ${all("[role=tab]").map((one) => one.textContent.trim()).join(" | ")}`,
    `tools: ${all(".tools > *, .tools .box > input, .facets > *").map(name).filter((text) => text.length < 60).join(" | ")}`,
    `columns: ${all(".heads > *").map(name).join(" | ")}`,
    `rows begin in the ${third(line.y, innerHeight)} third`,
    `axis: ${all("#overview text").map((one) => one.textContent).join(" … ")}`,
    ...all(".line").slice(0, 16).map((one) => [...one.children].filter(seen).map((cell) => cell.innerText.trim()).join(" | ")),
  ];
}"""

CONTRAST = """() => {
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const colour = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    const own = colour(getComputedStyle(element).backgroundColor);
    return own.length === 4 && own[3] === 0 && element.parentElement ? behind(element.parentElement) : own;
  };
  return [...document.querySelectorAll("header *, .heads *, .line *, .detail *")]
    .filter((one) => one.checkVisibility() && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((one) => {
      const [dark, bright] = [light(colour(getComputedStyle(one).color)), light(behind(one))].sort((a, b) => a - b);
      return [(bright + 0.05) / (dark + 0.05), one.textContent.slice(0, 40)];
    })
    .filter(([ratio]) => ratio < 4.5);
}"""
"""Texts that stand out from their background less than WCAG asks for."""


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", ["busy", "three"])
def test_the_page_looks_as_it_did(look: Look, tmp_path: Path, name: str, width: int) -> None:
    transcript = busy_scene().transcript if name == "busy" else three_servers()
    seen: dict[str, Any] = {}
    for scheme in ("light", "dark"):
        looking = look(width=width, color_scheme=scheme, timezone_id="UTC")
        seen[scheme] = looking.open(written(tmp_path, transcript)).page.evaluate(SEEN)
        assert looking.page.evaluate(CONTRAST) == []
        assert looking.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen["light"] == seen["dark"]
    same_as_golden(f"page-{name}-{width}", [[(line, "")] for line in seen["light"]])


@pytest.mark.parametrize("width", [400, 1280])
def test_the_live_page_looks_as_it_did(look: Look, store: Path, width: int) -> None:
    (store / "captures").mkdir(parents=True, mode=0o700)
    for name in ("channels", "time", "agent-model", "agent-weather"):
        shutil.copy(ROOT / "captures" / f"{name}.mcpspy", store / "captures")
    seen: dict[str, Any] = {}
    for scheme in ("light", "dark"):
        with live(look, width=width, color_scheme=scheme) as looking:
            expect(looking.page.locator("#summary")).to_contain_text("9 findings")
            expect(looking.page.locator("#overview text")).not_to_have_count(0)
            expect(looking.page.locator("#recordings a")).to_have_count(3)
            seen[scheme] = looking.page.evaluate(SEEN)
            assert looking.page.evaluate(CONTRAST) == []
            assert looking.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen["light"] == seen["dark"]
    same_as_golden(f"page-live-{width}", [[(line, "")] for line in seen["light"]])

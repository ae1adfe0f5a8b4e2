// Start the page once everything is defined.

document.querySelector("main").hidden = false;
byId("bar").hidden = false;
recall();
controls.facets();
controls.show();
waterfall.render();
findings.render();
tell("tab");
sift();
tell("chosen");
addEventListener("hashchange", () => {
  recall();
  controls.show();
  tell("tab");
  sift();
  tell("chosen");
});
if (isLive) live.start();
document.documentElement.dataset.ready = "yes";

// The page, once all of it is there.

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

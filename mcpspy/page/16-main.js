// Start the page once everything is defined.

document.querySelector("main").hidden = false;
byId("bar").hidden = false;
const address = location.hash;

function showAll() {
  recall();
  controls.facets();
  controls.show();
  waterfall.render();
  tell("tab");
  sift();
  tell("chosen");
}

// The first rows are shown at once, all of them when they have been read. The address may name one of those that come later.
function readOn() {
  const before = location.hash;
  const observer = new MutationObserver(show);
  observer.observe(document, { childList: true, subtree: true });
  allRead.then(show);
  function show() {
    if (rows.length === data.total || !putRest()) return;
    observer.disconnect();
    if (location.hash === before) history.replaceState(null, "", address || location.pathname + location.search);
    clock = measured();
    showAll();
  }
}

findings.render();
showAll();
addEventListener("hashchange", () => {
  recall();
  controls.show();
  tell("tab");
  sift();
  tell("chosen");
});
if (isLive) live.start();
else {
  if (!putRest()) readOn();
  allRead.then(() => {
    sought = { text: "", found: new Map() };
    if (state.search) sift({ scroll: false });
  });
}
document.documentElement.dataset.ready = "yes";

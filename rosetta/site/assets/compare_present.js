// One step fills the screen: arrow keys go on, Escape leaves. The code is as large as fits.
"use strict";

const presenter = document.querySelector("#presenter");
const [SMALLEST, READABLE, BROKEN, LARGEST] = [10, 16, 22, 44];          // sizes of type, pixels; BROKEN: at most, where names are

function stepShown() {
  return now.place in known.concepts ? page.querySelector(".shows")?.closest("section") || sections[0] : document.getElementById(now.place);
}

function present() {
  document.body.classList.toggle("presenting", now.presenting);
  presenter.hidden = !now.presenting;
  for (const section of sections) section.classList.toggle("presented", now.presenting && section === stepShown());
  presenter.querySelector("span").textContent = `${sections.indexOf(stepShown()) + 1} of ${sections.length}`;
  if (now.presenting) fit();
}

// The code as large as fits. Three ways to set lines, from the best: none wraps; they wrap between words; names are broken, too.
// A way is taken if its type is readable or hardly smaller than what the ways after it would give.
function fit() {
  const section = stepShown();
  const boxes = Array.from(section.querySelectorAll(".code"));
  const high = () => section.getBoundingClientRect().bottom <= innerHeight;
  const wide = () => boxes.every((box) => box.scrollWidth <= box.clientWidth);
  const ways = [["unwrapped", () => high() && wide(), LARGEST], ["whole", () => high() && wide(), LARGEST], ["broken", high, BROKEN]];
  const sizes = ways.map(([way, fits, most]) => {
    section.dataset.lines = way;
    return largest(section, fits, most);
  });
  const best = sizes.findIndex((size, place) => size >= READABLE || size >= 0.85 * Math.max(...sizes.slice(place)));
  section.dataset.lines = ways[best][0];
  section.style.setProperty("--type", `${sizes[best]}px`);
}

// The largest size of type at which a step fits.
function largest(section, fits, most) {
  let [low, high] = [SMALLEST, most];
  while (high - low > 0.25) {
    const middle = (low + high) / 2;
    section.style.setProperty("--type", `${middle}px`);
    if (fits()) low = middle;
    else high = middle;
  }
  return low;
}

function turn(by) {
  const next = sections[sections.indexOf(stepShown()) + by];
  if (!next) return;
  history.replaceState(null, "", writeAddress(now.names, next.id, true));
  show();
}

function leave() { location.hash = writeAddress(now.names, stepShown().id); }

document.querySelector("#present").addEventListener("click", () => { location.hash = writeAddress(now.names, inView().id, true); });
document.querySelector("#leave").addEventListener("click", leave);
for (const button of presenter.querySelectorAll("[data-by]")) button.addEventListener("click", () => turn(Number(button.dataset.by)));

const KEYS = {
  ArrowRight: () => turn(1), PageDown: () => turn(1), ArrowLeft: () => turn(-1), PageUp: () => turn(-1), Escape: leave,
};
document.addEventListener("keydown", (event) => {
  if (!now.presenting || event.altKey || event.ctrlKey || event.metaKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
window.addEventListener("resize", () => { if (now.presenting) fit(); });
window.addEventListener("hashchange", show);
show();

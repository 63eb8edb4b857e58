// One step fills the screen: arrow keys go on, Escape leaves. The code is set so that a class can read it.
"use strict";

const presenter = document.querySelector("#presenter");
const [READABLE, LARGEST] = [20, 44];                                    // sizes of type, pixels
const [HIGH, WIDE] = [1.3, 0.61];                                        // of a line and of a character, by the size of type

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

// The widest setting whose type a class can read, or the narrowest. A step that is higher than the screen is scrolled; what has
// room is larger.
function fit() {
  const wide = Math.min(...Array.from(stepShown().querySelectorAll(".code"), (box) => box.clientWidth)) - 16;
  room = known.widths.find((width) => wide / width / WIDE >= READABLE) || known.widths.at(-1);
  draw();
  mark([]);
  const section = stepShown();
  const longest = Math.max(...Array.from(section.querySelectorAll(".line"), (line) => line.textContent.length));
  const lines = Math.max(...articles(section).map((article) => article.querySelectorAll(".line").length));
  const whole = Math.min(wide / longest / WIDE, (innerHeight - 90) / lines / HIGH, LARGEST);
  section.style.setProperty("--type", `${Math.max(wide / room / WIDE, whole)}px`);
  scrollTo(0, 0);
}

// What does not fit on the screen comes first, then the next step.
function goOn(by) {
  const before = scrollY;
  scrollBy(0, 0.8 * by * innerHeight);
  if (scrollY === before) turn(by);
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
  ArrowRight: () => turn(1), PageDown: () => goOn(1), ArrowLeft: () => turn(-1), PageUp: () => goOn(-1), Escape: leave,
};
document.addEventListener("keydown", (event) => {
  if (!now.presenting || event.altKey || event.ctrlKey || event.metaKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
window.addEventListener("resize", () => { if (now.presenting) fit(); });
window.addEventListener("hashchange", show);
show();

// The concept table. The address says which frameworks are shown and at which row, as #framework+framework/concept;
// #all and #none for all and none. A concept alone, or nothing, shows the frameworks that the reader last read.
"use strict";

const FEW = 4;                                     // columns that fit a screen: the page scrolls, else the table in its box
const DEFAULT = 3;                                 // columns of a reader's own that the page begins with, at most
const table = document.querySelector("table.concepts");
const boxes = Array.from(document.querySelectorAll("#frameworks input"));
const headings = Array.from(table.querySelectorAll("thead [data-framework]"));

// ---- The address

function named(text) {
  let known;
  try { known = decodeURIComponent(text).toLowerCase(); } catch { known = text.toLowerCase(); }
  return known.replace(/\[.*/, "");                // of a variant its framework
}

function read() {
  const [first, second = ""] = location.hash.slice(1).split("/");
  const names = first.split("+").filter(Boolean).map(named);
  const alone = names.length === 1 && !second && document.querySelector(`tbody tr[id="${CSS.escape(names[0])}"]`);
  const concept = alone ? names[0] : named(second);
  if (names[0] === "all") return { chosen: boxes.map((box) => box.value), concept, unknown: [] };
  if (names[0] === "none") return { chosen: [], concept, unknown: [] };
  const asked = alone ? [] : names;
  const chosen = boxes.map((box) => box.value).filter((key) => asked.includes(key));
  const unknown = asked.filter((name) => !chosen.includes(name));
  if (concept && !document.querySelector(`tbody tr[id="${CSS.escape(concept)}"]`)) unknown.push(concept);
  return { chosen: chosen.length ? chosen : own(), concept, unknown };
}

// What the reader has last chosen here or on the compare page.
function own() {
  for (const place of ["concepts.", "compare."]) {
    const before = (stored.get(place + table.dataset.task) || "").split("+").map(named);
    const known = boxes.map((box) => box.value).filter((key) => before.includes(key));
    if (known.length) return known.slice(0, DEFAULT);
  }
  return table.dataset.first.split("+").map(named);
}

function address(chosen, concept) {
  const names = chosen.length === boxes.length ? "all" : chosen.map(encodeURIComponent).join("+") || "none";
  return "#" + names + (concept ? "/" + concept : "");
}

// ---- Showing

function show() {
  const { chosen, concept, unknown } = read();
  for (const box of boxes) {
    box.checked = chosen.includes(box.value);
    for (const cell of table.querySelectorAll(`[data-framework="${box.value}"]`)) cell.hidden = !box.checked;
  }
  table.style.setProperty("--columns", Math.max(chosen.length, 1));
  table.parentElement.classList.toggle("few", chosen.length <= FEW);
  const rows = headings.filter((heading) => chosen.includes(heading.dataset.framework)).map((heading) => heading.dataset.row);
  const columns = rows.slice(0, FEW).map(encodeURIComponent).join("+");
  for (const row of table.tBodies[0].rows) {
    row.classList.toggle("here", row.id === concept);
    row.querySelector("a.row").href = address(chosen, row.id);
    row.querySelector("a.place").href = `${table.dataset.compare}#${columns}/${row.id}`;
  }
  document.querySelector("#status").textContent = unknown.map((name) => `Nothing here has the name “${name}”.`).join(" ");
  if (!unknown.length) history.replaceState(null, "", address(chosen, concept));
  reach(document.querySelector("tr.here"));
}

// To a row, below the header: few columns scroll with the page, many in their box.
function reach(row) {
  const box = table.parentElement;
  if (!row) return;
  if (box.classList.contains("few")) {
    row.scrollIntoView();
    return;
  }
  box.scrollIntoView();
  box.scrollTop += row.getBoundingClientRect().top - table.tHead.getBoundingClientRect().bottom;
}

function choose(chosen) {
  if (chosen.length && chosen.length <= DEFAULT) stored.set("concepts." + table.dataset.task, chosen.join("+"));
  history.pushState(null, "", address(chosen, ""));
  show();
}

for (const box of boxes) {
  box.addEventListener("change", () => choose(boxes.filter((other) => other.checked).map((other) => other.value)));
}
document.querySelector("#none").addEventListener("click", () => choose([]));
document.querySelector("#all").addEventListener("click", () => choose(boxes.map((box) => box.value)));
table.addEventListener("click", (event) => {
  if (event.target.matches("a.row") && event.target.hash === location.hash) show();   // the current one scrolls again
});
window.addEventListener("hashchange", show);
show();

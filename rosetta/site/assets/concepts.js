// The concept table: which frameworks are shown is in the address, as #framework+framework; #none for none, nothing for all.
"use strict";

const table = document.querySelector("table.concepts");
const boxes = Array.from(document.querySelectorAll("#frameworks input"));

function showColumns() {
  const names = decodeURIComponent(location.hash.slice(1)).split("+").filter(Boolean);
  for (const box of boxes) {
    box.checked = !names.length || names.includes(box.value);
    for (const cell of table.querySelectorAll(`[data-framework="${box.value}"]`)) cell.hidden = !box.checked;
  }
}

for (const box of boxes) {
  box.addEventListener("change", () => {
    const chosen = boxes.filter((other) => other.checked).map((other) => other.value);
    location.hash = chosen.length === boxes.length ? "" : chosen.map(encodeURIComponent).join("+") || "none";
  });
}
document.querySelector("#none").addEventListener("click", () => { location.hash = "none"; });
document.querySelector("#all").addEventListener("click", () => { location.hash = ""; });
window.addEventListener("hashchange", showColumns);
showColumns();

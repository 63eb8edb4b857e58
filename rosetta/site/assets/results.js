// The tables of the results: which rows, figures or factors, sorted by what. The address says it all, as
// #at=machine, preset&view=question&frameworks=key+key&filter=words&show=factor&base=row&sort=table.column.down; any other fragment is a place.
"use strict";

const STEPS = [1, 1.05, 1.25, 1.5, 2, 4];                   // the factors from which a cell has the next colour
const tables = Array.from(document.querySelectorAll("table.sortable"));
const boxes = Array.from(document.querySelectorAll("#frameworks input"));
const filter = document.querySelector("#filter");
const column = document.querySelector("#column");
const view = document.querySelector("#view");
const base = document.querySelector("#base");
const told = document.querySelector("#status");

// ---- The address

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }        // a stray % is only a character
}

function read() {
  const parts = location.hash.slice(1).split("&").filter((part) => part.includes("="));
  const given = Object.fromEntries(parts.map((part) => [part.split("=")[0], part.slice(part.indexOf("=") + 1)]));
  const [table, column, way] = decoded(given.sort || "").split(".");
  return {
    frameworks: "frameworks" in given ? given.frameworks.split("+").filter(Boolean).map(decoded) : null,
    at: decoded(given.at || ""),
    view: decoded(given.view || ""),
    base: decoded(given.base || ""),
    filter: decoded(given.filter || ""),
    show: given.show === "factor" ? "factor" : "figures",
    sort: table ? { table, column: Number(column), down: way === "down" } : null,
  };
}

function address(state) {
  const { at, base, frameworks, filter: words, show, sort, view } = state;
  const parts = [
    at && "at=" + encodeURIComponent(at),
    view && "view=" + encodeURIComponent(view),
    frameworks && "frameworks=" + frameworks.map(encodeURIComponent).join("+"),
    words && "filter=" + encodeURIComponent(words),
    show === "factor" && "show=factor",
    base && "base=" + encodeURIComponent(base),
    sort && `sort=${sort.table}.${sort.column}.${sort.down ? "down" : "up"}`,
  ];
  return "#" + parts.filter(Boolean).join("&");
}

function change(part) {
  const next = address({ ...read(), ...part });
  if (next === (location.hash || "#")) return;
  history.pushState(null, "", next === "#" ? location.pathname : next);
  show();
}

// ---- Showing

function show() {
  const state = read();
  for (const box of boxes) box.checked = !state.frameworks || state.frameworks.includes(box.value);
  if (filter.value.trim() !== state.filter) filter.value = state.filter;
  for (const [select, value] of [[column, state.at], [view, state.view], [base, state.base]]) {
    select.value = value;
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  }
  document.querySelector(`input[name=show][value=${state.show}]`).checked = true;
  for (const table of tables) {
    const sorted = state.sort && state.sort.table === table.id && table.tHead.rows[0].cells[state.sort.column];
    if (sorted) sortTable(table, state.sort.column, state.sort.down);
    else unsortTable(table);
    choose(table, state.at, view.value);
    hide(table, state);
    compare(table, state.show === "factor", state.base);
  }
  say(state);
}

// One machine and preset at a time: the one that is asked for, where the table has it, else its first. Of it, one question.
function choose(table, at, view) {
  const headings = Array.from(table.tHead.rows[0].cells);
  const has = headings.map((heading) => heading.dataset.column || "").filter(Boolean);
  const chosen = has.includes(at) ? at : has[0];
  headings.forEach((heading, column) => {
    const { column: of = chosen, view: answers = view } = heading.dataset;
    const hidden = of !== chosen || answers !== view;
    for (const row of table.rows) row.cells[column].hidden = hidden;
  });
  const caption = table.querySelector("caption") || table.createCaption();
  caption.textContent = chosen || "";
  caption.hidden = !chosen;
}

function hide(table, state) {
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of table.tBodies[0].rows) {
    const chosen = !state.frameworks || state.frameworks.includes(row.dataset.framework);
    const text = row.textContent.toLowerCase();
    row.hidden = !chosen || !words.every((word) => text.includes(word));
  }
}

// Each figure against the best of its column, of the rows that are shown; or against that of a row.
function compare(table, asFactor, base) {
  Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
    if (!heading.dataset.better) return;
    const cells = Array.from(table.tBodies[0].rows, (row) => row.cells[column]).filter((cell) => cell.dataset.value);
    const shown = cells.filter((cell) => !cell.parentElement.hidden);
    const values = shown.map((cell) => Number(cell.dataset.value)).filter((value) => value > 0);
    const less = heading.dataset.better === "less";
    const own = cells.find((cell) => base && cell.parentElement.cells[0].textContent.trim() === base);
    const best = own ? Number(own.dataset.value) : less ? Math.min(...values) : Math.max(...values);
    for (const cell of cells) {
      const value = Number(cell.dataset.value);
      const factor = less ? value / best : best / value;
      const place = cell.querySelector("a") || cell;
      cell.dataset.text ??= place.textContent;
      place.textContent = asFactor && Number.isFinite(factor) ? factor.toFixed(2) : cell.dataset.text;
      cell.title = asFactor ? cell.dataset.text : "";
      if (values.length > 1 && Number.isFinite(factor)) cell.dataset.step = Math.max(0, STEPS.findLastIndex((least) => factor >= least));
      else delete cell.dataset.step;
    }
  });
}

function say(state) {
  const unknown = (state.frameworks || []).filter((name) => !boxes.some((box) => box.value === name));
  const rows = tables.flatMap((table) => Array.from(table.tBodies[0].rows));
  const said = unknown.map((name) => `No framework here has the name “${name}”.`);
  if (!rows.some((row) => !row.hidden)) said.push(state.filter ? `No row has “${state.filter}”.` : "No framework is chosen.");
  if (state.show === "factor") said.push(`1.00 is ${state.base || "the best row shown in its column"}.`);
  told.textContent = said.join(" ");
  const chosen = boxes.filter((box) => box.checked).length;
  document.querySelector("#frameworks summary").textContent = `Frameworks: ${chosen} of ${boxes.length}`;
}

// ---- What a reader does

for (const box of boxes) {
  box.addEventListener("change", () => {
    const chosen = boxes.filter((other) => other.checked).map((other) => other.value);
    change({ frameworks: chosen.length === boxes.length ? null : chosen });
  });
}
document.querySelector("#all").addEventListener("click", () => change({ frameworks: null }));
document.querySelector("#none").addEventListener("click", () => change({ frameworks: [] }));
for (const way of document.querySelectorAll("input[name=show]")) way.addEventListener("change", () => change({ show: way.value }));
column.addEventListener("change", () => change({ at: column.selectedIndex ? column.value : "" }));
view.addEventListener("change", () => change({ view: view.selectedIndex ? view.value : "" }));
base.addEventListener("change", () => change({ base: base.value, show: base.value ? "factor" : read().show }));
filter.addEventListener("input", () => {
  history.replaceState(null, "", address({ ...read(), filter: filter.value.trim() }));
  show();
});
document.addEventListener("sorted", (event) => change({ sort: { table: event.target.id, ...event.detail } }));
window.addEventListener("hashchange", show);
window.addEventListener("popstate", show);
document.querySelector("#frameworks").open = read().frameworks !== null;
show();

// What every page has: theme, size of type, copying, and tables that sort and filter. Nothing is fetched.
"use strict";

const stored = {
  get(name) { try { return localStorage.getItem("rosetta." + name); } catch { return null; } },   // some hosts forbid it
  set(name, value) { try { localStorage.setItem("rosetta." + name, value); } catch { /* the choice lasts for this page */ } },
};

// ---- Theme and size

const root = document.documentElement;
const themeButton = document.querySelector("#theme");
const sizeButton = document.querySelector("#size");
const SIZES = ["1", "1.25", "1.5"];

function showTheme() { themeButton.textContent = root.dataset.theme === "dark" ? "Light" : "Dark"; }

themeButton.addEventListener("click", () => {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  stored.set("theme", root.dataset.theme);
  showTheme();
});
sizeButton.addEventListener("click", () => {
  const now = root.style.getPropertyValue("--scale") || SIZES[0];
  const next = SIZES[(SIZES.indexOf(now) + 1) % SIZES.length];
  root.style.setProperty("--scale", next);
  stored.set("scale", next);
});
showTheme();

// ---- The link that skips the navigation: the address stays, since pages keep in it what they show

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.querySelector("#main").focus();
});

// ---- Copying

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const article = button.closest("article");
  const lines = article.source || Array.from(article.querySelectorAll(".line"), (line) => line.textContent);
  const text = lines.join("\n") + "\n";
  button.textContent = (await copied(text)) ? "Copied" : "Not copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {                                  // not a secure context: the old way
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// ---- Tables

for (const table of document.querySelectorAll("table.sortable")) {
  Array.from(table.tBodies[0].rows).forEach((row, place) => { row.dataset.place = place; });
  table.querySelectorAll("thead th").forEach((heading, column) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      sortTable(table, column, down);
      table.dispatchEvent(new CustomEvent("sorted", { bubbles: true, detail: { column, down } }));
    });
  });
}

function sortTable(table, column, down) {
  const headings = table.tHead.rows[0].cells;
  for (const other of headings) other.removeAttribute("aria-sort");
  headings[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  // Among figures words say why there is none
  const figures = Array.from(table.tBodies[0].rows).some((row) => "value" in row.cells[column].dataset);
  const key = (row) => row.cells[column].dataset.value ?? (figures ? "" : row.cells[column].textContent.trim());
  arrange(table, (one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === "" || b === "") return (a === "") - (b === "");          // what is missing stays last
    const order = isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
    return down ? -order : order;
  });
}

// Back to the order that the page came with.
function unsortTable(table) {
  for (const heading of table.tHead.rows[0].cells) heading.removeAttribute("aria-sort");
  arrange(table, (one, other) => one.dataset.place - other.dataset.place);
}

function arrange(table, order) {
  table.tBodies[0].append(...Array.from(table.tBodies[0].rows).sort(order));
}

// ---- The frameworks that the reader knows and wants to see: remembered, and first wherever there are answers

const FIRST = { know: "pytorch", show: "flax" };

function reader(name) { return stored.get(name) || FIRST[name]; }

function showPair() {
  for (const select of document.querySelectorAll("select[data-pair]")) {
    select.value = reader(select.dataset.pair);
    if (select.selectedIndex < 0) select.selectedIndex = 0;
  }
  const answers = Array.from(document.querySelectorAll("section.answer"));
  for (const name of ["show", "know"]) {
    const own = answers.find((one) => one.id === reader(name));
    if (own) own.parentElement.insertBefore(own, own.parentElement.querySelector("section.answer"));
  }
  const link = document.querySelector("[data-pair-page]");
  if (link) {
    const [know, show] = ["know", "show"].map(reader);
    const named = link.dataset.pairs.split(" ").includes(`${know}-to-${show}`);
    link.hidden = know === show;
    link.textContent = named ? "Their words side by side" : "Their programs side by side";
    link.href = root.dataset.root + (named ? `from-${know}-to-${show}.html` : `${link.dataset.programs}#${know}+${show}`);
  }
}

for (const select of document.querySelectorAll("select[data-pair]")) {
  select.addEventListener("change", () => { stored.set(select.dataset.pair, select.value); showPair(); });
}
showPair();
if (location.hash && document.querySelector("section.answer")) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();

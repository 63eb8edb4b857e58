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

// ---- Copying

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const lines = button.closest("article").querySelectorAll(".line");
  const text = Array.from(lines, (line) => line.textContent).join("\n") + "\n";
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
  table.querySelectorAll("thead th").forEach((heading, column) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(table, heading, column));
  });
}

function sort(table, heading, column) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const rows = Array.from(body.rows).sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === "" || b === "") return (a === "") - (b === "");          // what is missing stays last
    const order = isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
    return down ? -order : order;
  });
  body.append(...rows);
}

for (const input of document.querySelectorAll("input[data-filters]")) {
  const tables = document.querySelectorAll(input.dataset.filters);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const table of tables) {
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    }
  });
}

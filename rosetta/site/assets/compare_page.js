// The compare page: it shows what its address asks for, so that links and the back button work.
"use strict";

const page = document.querySelector("main");
const bar = document.querySelector("#bar");
const message = document.querySelector("#status");
const marking = document.querySelector("#mark");
const [adding, concepts, tasks] = ["#add", "#concept", "#task"].map((id) => document.querySelector(id));
const sections = Array.from(document.querySelectorAll("section.step"));
const known = JSON.parse(document.querySelector("#known").textContent);  // rows in the catalog's order, titles of concepts, widths of code
known.steps = sections.map((section) => section.id);
const rows = new Map(known.rows.map((row) => [row.name, row]));
const loaded = { program: {}, outputs: {} };                             // by what, and by name
const REMEMBERED = "compare." + page.dataset.task;
const TITLE = document.title;

window.rosetta = {                                                       // what the files below code/ and outputs/ call
  program(name, lines, steps) {                                          // its lines, each once, and their numbers in every setting
    for (const setting of Object.values(steps).flatMap(({ settings }) => settings)) setting.code = setting.code.map((n) => lines[n]);
    loaded.program[name] = steps;
  },
  outputs(name, printed) { loaded.outputs[name] = printed; },
};

function load(what, folder, name) {
  if (loaded[what][name]) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const src = `${page.dataset.root}${folder}/${page.dataset.task}/${encodeURIComponent(name)}.js`;
    document.head.append(make("script", { src, onload: resolve, onerror: () => reject(new Error(`${name} could not be loaded.`)) }));
  });
}

// ---- Showing

let now = { names: [], place: null, presenting: false };                 // what is shown

async function show() {
  const asked = readAddress(location.hash, known);
  const earlier = readAddress("#" + (stored.get(REMEMBERED) || ""), known).names;
  const names = [asked.names, earlier, own(), page.dataset.first.split("+")].find((some) => some.length);
  const next = { names, place: asked.place || sections[0].id, presenting: asked.presenting };
  history.replaceState(null, "", writeAddress(names, next.place, next.presenting));
  const address = location.hash;
  try {
    await Promise.all(names.map((name) => load("program", "code", rows.get(name).code)));
  } catch (error) {
    message.textContent = error.message;
    return;
  }
  if (location.hash !== address) return;                                 // another choice was made meanwhile
  const others = names.join() !== now.names.join();
  now = next;
  if (others) draw();
  if (concepts) concepts.value = known.concepts[next.place] ? next.place : "";
  for (const link of document.querySelectorAll(".steps a")) link.href = writeAddress(names, link.dataset.step);
  document.title = `${names.map((name) => rows.get(name).title).join(", ")}: ${placeTitle()} · ${TITLE}`;
  mark(asked.troubles);
  present();
  settle(asked.troubles);
  if (asked.place || next.presenting) go();
  else goUp();
}

function goUp() {
  measure();
  scrollTo(0, 0);
  showStep();
}

// The frameworks that the reader knows and wants to see, where both have been chosen.
function own() {
  const chosen = ["know", "show"].map((name) => known.rows.find((row) => row.program === stored.get(name))).filter(Boolean);
  return chosen.length === 2 ? [...new Set(chosen.map((row) => row.name))] : [];
}

function placeTitle() {
  return known.concepts[now.place] || document.querySelector(`#${now.place}-heading`).textContent;
}

// One framework's part of a step, set for a column of this many characters: as it was written where that fits, else the first of its
// settings that does, and at worst the narrowest.
function column(name, step, characters = room) {
  const row = rows.get(name);
  const part = loaded.program[row.code][step];
  if (!part) return { row, step };
  const { note, settings } = part;
  const written = { row, step, section: settings[0] };
  const section = { note, ...(settings.find(({ width }) => width <= characters) || settings.at(-1)) };
  return { row, step, section, source: linesOf(written).map(plain) };
}

let room = Infinity;                                                     // characters of a column

function characters() {
  const box = page.querySelector(".columns .code");
  const probe = box.appendChild(make("span", { textContent: "0".repeat(100) }));
  const wide = probe.getBoundingClientRect().width / 100;
  probe.remove();
  const { paddingLeft, paddingRight } = getComputedStyle(box);
  return Math.floor((box.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)) / wide);
}

// Draws again where columns have room for another number of characters than those that are shown.
function settle(troubles = []) {
  const found = now.names.length && !now.presenting ? characters() : room;
  if (found === room) return;
  room = found;
  draw();
  mark(troubles);
}

function articles(section) { return Array.from(section.querySelectorAll("article")); }

function draw() {
  const { names } = now;
  page.style.setProperty("--columns", names.length);
  page.dataset.columns = names.length;
  document.querySelector("#heads").replaceChildren(...heads(names, rows, choose));
  adding.disabled = names.length >= Math.min(MOST, rows.size);
  for (const option of adding.options) option.disabled = names.includes(option.value);
  for (const section of sections) {
    const columns = names.map((name) => column(name, section.id));
    const grid = section.querySelector(".columns");
    grid.replaceChildren(...columns.map((one) => cell(one, section.querySelector("h2").textContent)));
  }
  showOutputs();
}

// Other columns, at the step that is in view.
function choose(names) {
  stored.set(REMEMBERED, names.join("+"));
  location.hash = writeAddress(names, known.concepts[now.place] ? now.place : inView().id);
}

adding.addEventListener("change", () => {
  const name = adding.value;
  adding.value = "";                                                     // it says again what it is for
  if (name) choose([...now.names, name]);
});

if (concepts) concepts.addEventListener("change", () => {
  location.hash = writeAddress(now.names, concepts.value || inView().id);
});

// The same frameworks at another task: their first rows, since it may have other variants.
tasks.addEventListener("change", () => {
  const programs = new Set(now.names.map((name) => rows.get(name).program));
  location.href = tasks.value + "#" + Array.from(programs, encodeURIComponent).join("+");
});

// ---- Marks, and what is said

function mark(troubles) {
  const said = [...troubles];
  const concept = known.steps.includes(now.place) ? null : now.place;
  let [differ, shown] = [0, 0];
  for (const section of sections) {
    const columns = now.names.map((name) => column(name, section.id));
    differ += paint(section, "differs", marking.checked ? differing(columns) : []);
    shown += paint(section, "shows", concept ? showing(columns, concept) : []);
  }
  if (concept) said.push(shown ? `${known.concepts[concept]}: ${shown} lines are marked.` : `No line of these columns shows ${known.concepts[concept]}.`);
  if (marking.checked) said.push(differ ? `${differ} lines differ.` : "Nothing differs.");
  const lacking = now.names.filter((name) => page.classList.contains("outputs") && !rows.get(name).executed);
  if (lacking.length) said.push(`There is no executed copy of ${lacking.map((name) => rows.get(name).title).join(", ")}.`);
  message.textContent = said.join(" ");
  if (concept && known.entries[concept]) message.append(" ", make("a", { href: known.entries[concept], textContent: "In every framework" }));
}

// ---- Pointing at a line lights its counterparts: the lines of all columns that show the same

let lit = null;                                                          // the concept that is

function light(concept) {
  if (concept === lit) return;
  lit = concept;
  for (const section of sections) paint(section, "lit", concept ? showing(now.names.map((name) => column(name, section.id)), concept) : []);
}

document.querySelector("main").addEventListener("mouseover", (event) => {
  const line = event.target.closest(".columns .line");
  const section = line && line.closest("section");
  if (!section) { light(null); return; }
  const shown = column(now.names[articles(section).indexOf(line.closest("article"))], section.id).section.concepts;
  const number = Array.from(line.parentElement.children).indexOf(line);
  light(Object.keys(shown).find((concept) => shown[concept].includes(number)) || null);
});

// Marks these lines of a step and no others; returns how many. lines: for each column their numbers
function paint(section, mark, lines) {
  for (const line of section.querySelectorAll("." + mark)) line.classList.remove(mark);
  articles(section).forEach((article, place) => {
    const all = article.querySelectorAll(".line");
    for (const number of lines[place] || []) all[number].classList.add(mark);
  });
  return section.querySelectorAll("." + mark).length;
}

marking.addEventListener("change", () => mark([]));

// ---- What is in view

// To the place of the address: a step, or the first line of a concept.
function go() {
  measure();
  const line = known.steps.includes(now.place) ? null : page.querySelector(".shows");
  if (line) line.scrollIntoView({ block: "center" });
  else document.getElementById(known.steps.includes(now.place) ? now.place : sections[0].id).scrollIntoView();
  showStep();
}

let measured = 0;                                                        // the bar's height

function measure() {
  measured = bar.offsetHeight;
  root.style.setProperty("--bar", `${measured}px`);
}

function inView() {
  const edge = bar.getBoundingClientRect().bottom + 60;
  return sections.findLast((section) => section.getBoundingClientRect().top <= edge) || sections[0];
}

function showStep() {
  const step = inView().id;
  for (const link of document.querySelectorAll(".steps a")) {
    if (link.dataset.step === step) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

document.querySelector(".steps").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (link && link.hash === location.hash) go();                         // the browser sees nothing to do
});
document.addEventListener("scroll", showStep, { passive: true });
new ResizeObserver(() => settle()).observe(page);
new ResizeObserver(() => {                                               // what is read stays below a bar that grows
  const before = measured;
  measure();
  if (scrollY > bar.parentElement.offsetTop + 100) scrollBy(0, before - measured);
}).observe(bar);

// ---- How it is shown

for (const box of document.querySelectorAll("[data-view]")) {
  const name = box.dataset.view;
  box.checked = (stored.get("compare." + name) || String(box.checked)) === "true";
  page.classList.toggle(name, box.checked);
  box.addEventListener("change", () => {
    stored.set("compare." + name, String(box.checked));
    page.classList.toggle(name, box.checked);
    showOutputs();
    mark([]);
  });
}

async function showOutputs() {
  if (!page.classList.contains("outputs")) return;
  const names = now.names.filter((name) => rows.get(name).executed);
  await Promise.all(names.map((name) => load("outputs", "outputs", name)));
  for (const section of sections) {
    articles(section).forEach((article, place) =>
      fillOutputs(article, column(now.names[place], section.id), loaded.outputs[now.names[place]]));
  }
}

document.addEventListener("click", (event) => {
  const view = document.querySelector("#view");
  if (!view.contains(event.target)) view.open = false;
});

// The search box of every page: questions, their answers and pages. What it knows is a script, loaded when the box is first
// used: pages opened from a disk may fetch nothing.
"use strict";

(() => {                                           // the names of other scripts are theirs
const box = document.querySelector("#search");
const list = document.querySelector("#found");
const SHOWN = 8;                                   // results
const NOISE = 0.08;                                // of the best result's score: what has less is left out
const LOADED = ["minisearch.js", "known.js"];      // below assets/; the second calls rosettaSearch.learn
const WEIGHTS = { question: 6, aliases: 6, key: 4, names: 3, definition: 2, words: 1 };
const IDLE = new Set("a an and are as at by can do does for from get how i in is it its make my of on or the to use what when where which why with".split(" "));

// ---- Words

// The parts of a text as they are indexed: whole words, and their parts at dots, underscores and capitals; and pairs, so that
// "batch norm" is found as "batchnorm".
function parts(text) {
  const found = [];
  let before = "";
  for (const word of text.split(/[^\p{L}\p{N}_.]+/u).map((one) => one.replace(/^[._]+|[._]+$/g, "")).filter(Boolean)) {
    const pieces = word.replace(/([a-z\d])([A-Z])/g, "$1 $2").split(/[._\s]+/).filter(Boolean);
    found.push(word, word.replace(/[._]/g, ""), ...pieces, ...word.split("."));
    if (before) found.push(before + pieces[0]);
    before = pieces[pieces.length - 1];
  }
  return [...new Set(found.map((one) => one.toLowerCase()))];
}

// What is typed: the words that name frameworks choose those, the others are looked for.
function read(text) {
  const joined = text.toLowerCase().replace(/\b([a-z]+) (\d)(?![\w.])/g, (both, word, digit) => (known.words[word + digit] ? word + digit : both));
  const chosen = new Set();
  const pair = [];                                 // the first framework that each word means
  const left = [];
  for (const word of joined.split(/[\s,;?!]+/).filter(Boolean)) {
    const named = known.words[word];
    if (named) {
      pair.push(named[0]);
      named.forEach((key) => chosen.add(key));
    } else left.push(word);
  }
  const wanted = left.filter((word) => !IDLE.has(word));
  return { pair: [...new Set(pair)], chosen: Object.keys(known.frameworks).filter((key) => chosen.has(key)), typed: left.join(" "), wanted: wanted.length ? wanted : left };
}

// ---- What is known

let known = null;
let index = null;
const documents = new Map();

const rosettaSearch = window.rosettaSearch = {
  // content: {frameworks: {key: title}, words: {word: [key]}, entries: [...], pages: [...], pairs: ["a-to-b"], beside: {title, href, columns}}
  learn(content) {
    known = content;
    index = new MiniSearch({
      fields: Object.keys(WEIGHTS),
      tokenize: parts,
      processTerm: (term) => term.toLowerCase(),
      searchOptions: { boost: WEIGHTS, tokenize: (text) => text.split(" "), prefix: (term) => term.length > 2, fuzzy: (term) => (term.length > 4 ? 0.2 : false) },
    });
    const entries = content.entries.map((entry) => ({
      ...entry,
      aliases: entry.aliases.join(", "),
      key: entry.id.replace(/-/g, " "),
      names: [...new Set(Object.values(entry.answers).flatMap((answer) => answer.names))].join(" "),
      words: Object.values(entry.answers).map((answer) => answer.words).join(" "),
    }));
    const pages = content.pages.map((page, number) => ({ id: `page ${number}`, question: page.title, definition: page.about, aliases: page.aliases, page }));
    for (const one of [...entries, ...pages]) {
      const names = new Set([one.question, one.key || "", ...(one.aliases || "").split(", ")].map((name) => name.toLowerCase()));
      documents.set(one.id, { ...one, names, told: new Set(parts(`${one.question}, ${one.aliases}`)) });
    }
    index.addAll([...entries, ...pages]);
  },

  // The results for what is typed, best first: {href, title, framework, line, about}.
  find(text) {
    const { chosen, pair, typed, wanted } = read(text);
    const query = wanted.map((word) => word.replace(/[()[\]{}"'`]/g, "").replace(/^[._]+|[._]+$/g, "")).filter(Boolean).join(" ");
    if (!query || pair.length && wanted.every((word) => IDLE.has(word))) return [...together(pair), ...chosen.map(frameworkPage).filter(Boolean)];
    const lasts = query.split(" ").filter((word) => word.includes(".")).map((word) => word.split(".").pop());
    // What is told as a name of an entry, word for word, is that entry
    const boostDocument = (id) => {
      const { told, names } = documents.get(id);
      return (names.has(query.toLowerCase()) ? 4 : 1) * (lasts.some((last) => told.has(last)) ? 3 : 1);
    };
    let hits = index.search(query, { combineWith: "AND", boostDocument });
    if (!hits.length) hits = index.search(parts(query).join(" "), { combineWith: "AND" });
    if (!hits.length) {                              // most of the words will do
      const words = query.split(" ").length;
      hits = index.search(query, { combineWith: "OR", boostDocument }).filter((hit) => 2 * hit.queryTerms.length > words);
    }
    hits = hits.filter((hit) => hit.score > NOISE * hits[0].score);
    return hits.slice(0, SHOWN).flatMap((hit) => results(documents.get(hit.id), chosen, typed)).slice(0, SHOWN);
  },
};

// Of two frameworks: their words beside each other, and their programs.
function together(pair) {
  const { title, href, columns } = known.beside;
  if (pair.length !== 2) return [];
  const [one, other] = pair.map((key) => known.frameworks[key]);
  const found = [];
  if (known.pairs.includes(pair.join("-to-"))) found.push({ href: `from-${pair.join("-to-")}.html`, title: `From ${one} to ${other}`, about: "Their words side by side" });
  if (pair.every((key) => columns[key])) found.push({ href: `${href}#${pair.map((key) => encodeURIComponent(columns[key])).join("+")}`, title: `${one} and ${other}`, about: `${title}, side by side` });
  return found.map((result) => ({ framework: "", line: "", ...result }));
}

function frameworkPage(key) {
  const page = known.pages.find((one) => one.framework === key);
  return page && { href: page.href, title: page.title, framework: "", line: "", about: page.about };
}

// An entry in the frameworks that were named; else where its answer has the typed name; else in the reader's own.
function results(found, chosen, typed) {
  if (found.page) return [{ href: found.page.href, title: found.page.title, framework: "", line: "", about: found.page.about }];
  const written = typed.toLowerCase().replace(/\(.*/, "");
  const having = written.includes(".") ? Object.keys(found.answers).filter((key) => found.answers[key].names.some((name) => name.toLowerCase().endsWith(written))) : [];
  const own = ["know", "show"].map(reader).filter((key) => found.answers[key]);
  const shown = chosen.length ? chosen.filter((key) => found.answers[key]) : having.length ? having.slice(0, 1) : own;
  if (!shown.length) return [{ href: `c/${found.id}.html`, title: found.question, framework: "", line: "", about: found.definition }];
  const rows = shown.map((key) => ({
    href: `c/${found.id}.html#${key}`, title: found.question, framework: known.frameworks[key], line: found.answers[key].line, about: found.answers[key].lacks || "",
  }));
  return chosen.length || having.length ? rows : [{ ...rows[0], href: `c/${found.id}.html`, lines: rows }];
}

// ---- The box

let asked = null;                                  // the loading of what is known

function load() {
  asked = asked || LOADED.reduce((before, name) => before.then(() => new Promise((done, failed) => {
    document.head.append(Object.assign(document.createElement("script"), { src: root.dataset.root + "assets/" + name, onload: done, onerror: failed }));
  })), Promise.resolve());
  return asked;
}

async function show() {
  const text = box.value.trim();
  if (!text) { hide(); return; }
  await load();
  if (box.value.trim() !== text) return;           // something else was typed meanwhile
  const found = rosettaSearch.find(text);
  list.replaceChildren(...found.map(option));
  if (!found.length) list.append(Object.assign(document.createElement("li"), { className: "nothing", textContent: "Nothing here has these words. Try fewer, or another name for it." }));
  list.hidden = false;
  box.setAttribute("aria-expanded", "true");
  choose(0);
}

function option(result, number) {
  const item = document.createElement("li");
  const link = Object.assign(document.createElement("a"), { href: root.dataset.root + result.href, tabIndex: -1 });
  item.id = `found-${number}`;
  item.setAttribute("role", "option");
  link.append(part("strong", result.title));
  const lines = result.lines || [result];
  for (const { framework, line, about } of lines) {
    const row = part("span", "", "line");
    if (framework) row.append(part("em", framework), " ");
    row.append(line ? part("code", line) : about);
    link.append(row);
  }
  item.append(link);
  return item;
}

function part(tag, text, className = "") { return Object.assign(document.createElement(tag), { textContent: text, className }); }

function hide() {
  list.hidden = true;
  box.setAttribute("aria-expanded", "false");
  box.removeAttribute("aria-activedescendant");
}

function choose(place) {
  const options = Array.from(list.querySelectorAll("[role=option]"));
  if (!options.length) { box.removeAttribute("aria-activedescendant"); return; }
  const now = (place + options.length) % options.length;
  options.forEach((one, number) => one.setAttribute("aria-selected", String(number === now)));
  options[now].scrollIntoView({ block: "nearest" });
  box.setAttribute("aria-activedescendant", options[now].id);
}

const chosen = () => Array.from(list.querySelectorAll("[role=option]")).findIndex((one) => one.getAttribute("aria-selected") === "true");

box.addEventListener("focus", load);
box.addEventListener("input", show);
box.addEventListener("keydown", async (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (list.hidden) await show();
    else choose(chosen() + (event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Enter") {
    event.preventDefault();
    await show();
    list.querySelector("[aria-selected=true] a")?.click();
  } else if (event.key === "Escape") {
    hide();
  }
});
document.addEventListener("click", (event) => { if (!event.target.closest(".search")) hide(); });
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea, [contenteditable]");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  box.focus();
  box.select();
});
if (box.hasAttribute("autofocus")) load();
})();

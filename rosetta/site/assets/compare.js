// The compare page: the address says what is shown, as #framework+framework/step, so that links and the back button work.
"use strict";

const MOST = 4;
const page = document.querySelector("main");
const rows = JSON.parse(document.querySelector("#rows").textContent);    // name -> {title, program, note, injected}
const steps = Array.from(document.querySelectorAll("section.step"), (section) => section.id);
const programs = {};                                                     // what has been loaded, by name
const choices = document.querySelector("#choices");
const marking = document.querySelector("#mark");

window.rosetta = { add(name, program) { programs[name] = program; } };   // what the files below code/ call

function load(name) {
  if (programs[name]) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = page.dataset.code + name + ".js";
    script.onload = resolve;
    script.onerror = () => reject(new Error(name + " could not be loaded"));
    document.head.append(script);
  });
}

// ---- The address

function address(names, step) {
  return "#" + names.map(encodeURIComponent).join("+") + (step ? "/" + step : "");
}

function wanted() {
  const [names, step] = decodeURIComponent(location.hash.slice(1)).split("/");
  const known = names.split("+").filter((name) => rows[name]).slice(0, MOST);
  return { names: known, step: steps.includes(step) ? step : null };
}

function go(names) {
  stored.set("compare." + page.dataset.task, names.join("+"));
  location.hash = address(names, wanted().step);
}

// ---- Showing

let shown = null;

async function show() {
  const { names, step } = wanted();
  if (!names.length) {
    const before = (stored.get("compare." + page.dataset.task) || "").split("+").filter((name) => rows[name]);
    const first = before.length ? before : page.dataset.first.split("+");
    history.replaceState(null, "", address(first, step));
    return show();
  }
  if (names.join("+") !== shown) {
    try {
      await Promise.all(names.map((name) => load(rows[name].program)));
    } catch (error) {
      document.querySelector("#status").textContent = error.message;
      return;
    }
    if (wanted().names.join("+") !== names.join("+")) return;            // another choice was made meanwhile
    shown = names.join("+");
    draw(names);
  }
  for (const link of document.querySelectorAll(".steps a")) {
    link.href = address(names, link.dataset.step);
    if (link.dataset.step === step) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  if (step) document.getElementById(step).scrollIntoView();
  return undefined;
}

function draw(names) {
  drawChoices(names);
  for (const step of steps) {
    const columns = document.querySelector(`#${step} .columns`);
    columns.style.setProperty("--columns", names.length);
    columns.replaceChildren(...names.map((name) => cell(name, step)));
  }
  mark(names);
  document.querySelector("#status").textContent = names.map((name) => rows[name].title).join(", ") + " side by side";
}

function cell(name, step) {
  const article = document.createElement("article");
  const sections = programs[rows[name].program][step];
  const title = Object.assign(document.createElement("h3"), { className: "title" });
  title.append(Object.assign(document.createElement("a"), { href: rows[name].page, textContent: rows[name].title }));
  article.append(title);
  if (!sections) {
    article.append(Object.assign(document.createElement("p"), { className: "note", textContent: "No counterpart." }));
    return article;
  }
  const copy = Object.assign(document.createElement("button"), { className: "copy", type: "button", textContent: "Copy" });
  copy.setAttribute("aria-label", `Copy ${step} of ${rows[name].title}`);
  title.append(copy);
  for (const section of sections) {
    const note = Object.assign(document.createElement("div"), { className: "note", innerHTML: section.note });
    const code = Object.assign(document.createElement("pre"), { className: "code", tabIndex: 0 });
    code.setAttribute("role", "region");
    code.setAttribute("aria-label", `${rows[name].title}: ${step}`);
    const lines = step === "parameters" ? section.code.concat(rows[name].injected) : section.code;
    for (const line of lines) {
      code.append(Object.assign(document.createElement("span"), { className: "line", innerHTML: line }));
    }
    article.append(note, code);
  }
  return article;
}

function drawChoices(names) {
  choices.replaceChildren(...names.map((name, place) => {
    const choice = Object.assign(document.createElement("span"), { className: "choice" });
    const select = document.querySelector("#options").content.firstElementChild.cloneNode(true);
    select.value = name;
    select.setAttribute("aria-label", `Column ${place + 1}`);
    select.addEventListener("change", () => go(names.with(place, select.value)));
    choice.append(select);
    if (names.length > 1) {
      const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
      remove.setAttribute("aria-label", `Remove ${rows[name].title}`);
      remove.addEventListener("click", () => go(names.toSpliced(place, 1)));
      choice.append(remove);
    }
    return choice;
  }));
  document.querySelector("#add").disabled = names.length >= MOST;
}

document.querySelector("#add").addEventListener("click", () => {
  const { names } = wanted();
  const next = Object.keys(rows).find((name) => !names.includes(name));
  go([...names, next]);
});

// ---- What differs between columns of one notebook

function mark(names) {
  const related = names.filter((name) => names.some((other) => other !== name && rows[other].program === rows[name].program));
  marking.disabled = !related.length;
  for (const step of steps) {
    const articles = document.querySelectorAll(`#${step} .columns article`);
    names.forEach((name, place) => {
      const others = names.flatMap((other, at) =>
        other !== name && rows[other].program === rows[name].program ? [texts(articles[at])] : []);
      for (const line of articles[place].querySelectorAll(".line")) {
        const differs = others.some((other) => !other.has(line.textContent));
        line.classList.toggle("differs", marking.checked && line.textContent.trim() !== "" && differs);
      }
    });
  }
}

function texts(article) {
  return new Set(Array.from(article.querySelectorAll(".line"), (line) => line.textContent));
}

marking.addEventListener("change", () => mark(wanted().names));
window.addEventListener("hashchange", show);
show();

// What stands in the columns: one article for each framework and step, and the heads above them.
"use strict";

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// One framework's part of a step. Its title, note, code and output lie in the rows of the grid around it.
function cell(column, heading) {
  const { row, section } = column;
  const title = make("h3", { className: "title" }, make("a", { href: row.page, textContent: row.title }));
  const article = make("article", { source: column.source }, title);
  if (section) {
    title.append(copyButton(`Copy ${column.step} of ${row.title}`));
    article.append(
      make("div", { className: "note", innerHTML: section.note }),
      code(linesOf(column), `${row.title}: ${heading}`),
      make("div", { className: "output" }));
  } else article.append(make("p", { className: "note", textContent: "No counterpart." }));
  return article;
}

function copyButton(label) {
  const button = make("button", { className: "copy", type: "button", textContent: "Copy" });
  button.setAttribute("aria-label", label);
  return button;
}

function code(lines, label) {
  const box = make("pre", { className: "code", tabIndex: 0 });
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  for (const html of lines) box.append(make("span", { className: "line", innerHTML: html }));
  return box;
}

// What the executed copy printed at a step, below the code that printed it.
function fillOutputs(article, column, outputs) {
  const printed = outputs && outputs.steps[column.step];
  if (!column.section || !printed || !printed.text) return;
  const words = printed.same ? "Output" : "Output of an earlier version of this cell";
  const about = make("p", { className: "quiet" }, `${words}: `, make("a", { href: outputs.page, textContent: outputs.about }));
  article.querySelector(".output").replaceChildren(about, make("pre", { textContent: printed.text }));
}

// The heads: a choice for each column. chosen(names) is called with the new columns.
function heads(names, rows, chosen) {
  return names.map((name, place) => {
    const select = document.querySelector("#options").content.firstElementChild.cloneNode(true);
    select.value = name;
    select.setAttribute("aria-label", `Column ${place + 1}`);
    for (const option of select.options) option.disabled = option.value !== name && names.includes(option.value);
    select.addEventListener("change", () => chosen(names.with(place, select.value)));
    const head = make("span", { className: "head" }, select);
    if (names.length > 1) {
      const remove = make("button", { type: "button", textContent: "×" });
      remove.setAttribute("aria-label", `Remove ${rows.get(name).title}`);
      remove.addEventListener("click", () => chosen(names.toSpliced(place, 1)));
      head.append(remove);
    }
    return head;
  });
}

// Which lines of the columns are marked: those that differ, and those that show a concept.
// A column here is {row, step, section}: its row, and the section of its program at that step, if it has one.
"use strict";

// For each column the lines that differ from another. Between variants of one notebook these are lines that the other lacks; between
// frameworks calls of the same name, of which the other has none with these arguments. Calls without any are not compared.
function differing(columns) {
  return columns.map((column) => {
    const others = columns.filter((other) => other !== column);
    const variants = others.filter((other) => other.row.program === column.row.program).map((other) => new Set(linesOf(other).map(plain)));
    const calls = others.filter((other) => other.row.program !== column.row.program).map(callsByName);
    const lines = [];
    linesOf(column).forEach((line, number) => {
      const text = plain(line);
      if (text.trim() && variants.some((other) => !other.has(text))) lines.push(number);
    });
    for (const [name, given, first, last] of column.section?.calls || []) {
      if (!given || !calls.some((other) => other.has(name) && !other.get(name).has(given))) continue;
      for (let number = first; number <= last; number += 1) lines.push(number);
    }
    return lines;
  });
}

// For each column the lines that show a concept.
function showing(columns, concept) { return columns.map(({ section }) => section?.concepts[concept] || []); }

// The lines of a section, as HTML; a run of a variant adds its own below the parameters.
function linesOf({ row, step, section }) {
  if (!section) return [];
  return step === "parameters" ? section.code.concat(row.injected) : section.code;
}

function callsByName({ section }) {
  const found = new Map();
  for (const [name, given] of section?.calls || []) {
    if (given) found.set(name, (found.get(name) || new Set()).add(given));
  }
  return found;
}

function plain(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  return box.content.textContent;
}

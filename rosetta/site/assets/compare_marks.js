// Which lines of the columns are marked: those that differ, and those that show a concept.
// A column here is {row, sections} at one step: its row and the sections of its program there.
"use strict";

// For each column the lines that differ from another: a list of [section, line]. Between variants of one notebook these are lines
// that the other lacks; between frameworks calls of the same name, of which the other has none with these arguments. Calls without any are not compared.
function differing(columns) {
  return columns.map((column) => {
    const others = columns.filter((other) => other !== column);
    const variants = others.filter((other) => other.row.program === column.row.program).map(texts);
    const calls = others.filter((other) => other.row.program !== column.row.program).map(callsByName);
    const lines = [];
    column.sections.forEach((section, place) => {
      linesOf(column, place).forEach((line, number) => {
        const text = plain(line);
        if (text.trim() && variants.some((other) => !other.has(text))) lines.push([place, number]);
      });
      for (const [name, given, first, last] of section.calls) {
        if (!given || !calls.some((other) => other.has(name) && !other.get(name).has(given))) continue;
        for (let number = first; number <= last; number += 1) lines.push([place, number]);
      }
    });
    return lines;
  });
}

// For each column the lines that show a concept.
function showing(columns, concept) {
  return columns.map(({ sections }) =>
    sections.flatMap((section, place) => (section.concepts[concept] || []).map((number) => [place, number])));
}

// The lines of a section, as HTML; a run of a variant adds its own below the parameters.
function linesOf({ row, step, sections }, place) {
  return step === "parameters" ? sections[place].code.concat(row.injected) : sections[place].code;
}

function texts(column) {
  return new Set(column.sections.flatMap((_, place) => linesOf(column, place).map(plain)));
}

function callsByName({ sections }) {
  const found = new Map();
  for (const [name, given] of sections.flatMap((section) => section.calls)) {
    if (given) found.set(name, (found.get(name) || new Set()).add(given));
  }
  return found;
}

function plain(html) {
  const box = document.createElement("template");
  box.innerHTML = html;
  return box.content.textContent;
}

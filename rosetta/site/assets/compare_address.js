// The address of the compare page: #framework+framework/place, where a place is a step or a concept; /present behind it fills the screen.
"use strict";

const MOST = 4;                                                          // columns

// What an address asks for, and in words what it asks for in vain. Upper and lower case are the same.
// known: {rows, steps, concepts}; returns {names, place, presenting, troubles}, with no names and no place where it has none.
function readAddress(hash, known) {
  const troubles = [];
  let text = hash.slice(1);
  try {
    text = decodeURIComponent(text);
  } catch {
    troubles.push("The address cannot be read.");
    text = "";
  }
  const [columns, place = "", mode = ""] = text.split("/").map((part) => part.trim());
  const names = [];
  for (const asked of columns.split("+").filter(Boolean)) {
    const row = findRow(asked, known.rows);
    if (!row) troubles.push(`This task has no framework “${asked}”.`);
    else if (names.length === MOST && !names.includes(row.name)) troubles.push(`${row.title} is left out: there are at most ${MOST} columns.`);
    else if (!names.includes(row.name)) names.push(row.name);
  }
  const places = [...known.steps, ...Object.keys(known.concepts)];
  const found = places.find((one) => same(one, place)) || null;
  if (place && !found) troubles.push(`There is no step or concept “${place}”.`);
  return { names, place: found, presenting: same(mode, "present"), troubles };
}

// A row by its name; a framework that has only variants stands for the first of them.
function findRow(asked, rows) {
  return rows.find((row) => same(row.name, asked)) || rows.find((row) => same(row.program, asked));
}

function same(one, other) { return one.toLowerCase() === other.toLowerCase(); }

function writeAddress(names, place, presenting) {
  return "#" + names.map(encodeURIComponent).join("+") + "/" + place + (presenting ? "/present" : "");
}

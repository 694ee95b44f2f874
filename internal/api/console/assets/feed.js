// A list that grows at its head. What is new is written into the rows that are there, and what they had into
// those below: nothing moves, and nothing is made anew. Below as many rows as a screen has it is otherwise:
// there rows are added, up to as many as are kept.
import { localTimes } from "./times.js";

const kept = 500, written = 50;

// A row is a time, a link, and texts.
const places = row => [row.querySelector("time"), row.querySelector("a"), ...row.querySelectorAll(".cut")];

function read(row) {
  const [time, link, ...texts] = places(row);
  return [time.dateTime, link.getAttribute("href"), link.textContent, ...texts.map(t => t.textContent)];
}

function write(row, [at, to, name, ...said]) {
  const [time, link, ...texts] = places(row);
  if (link.getAttribute("href") === to) return;
  time.dateTime = at;
  link.setAttribute("href", to);
  link.textContent = name;
  texts.forEach((t, i) => { t.textContent = said[i]; if (t.hasAttribute("title")) t.title = said[i]; });
  localTimes(row);
}

export function grow({ id, rows, more }) {
  const list = document.getElementById(id), said = document.getElementById(`${id}-more`);
  if (said) said.textContent = more;
  if (!rows?.length || !list?.firstElementChild) return;
  const there = [...list.children], top = there.slice(0, written);
  const told = [...rows, ...top.map(read)], room = Math.max(written - there.length, 0);
  for (let i = 0; i < Math.min(room, rows.length); i++) top.push(list.appendChild(there[0].cloneNode(true)));
  top.forEach((row, i) => write(row, told[i]));
  const below = told.slice(top.length).map(told => { const row = there[0].cloneNode(true); write(row, told); return row; });
  top.at(-1).after(...below);
  while (list.children.length > kept) list.lastElementChild.remove();
}

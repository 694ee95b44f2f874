// A list that grows at its head. What is new is written into the rows that are there, and what they had into
// those below: nothing moves, and nothing is made anew. Below as many rows as a screen has it is otherwise:
// there rows are added, up to as many as are kept.
import { localTime } from "./times.js";

const kept = 500, written = 50;

// A row is a time, a link, and texts. What it is made of and says is remembered: at its pace a list would do
// little else than look for it.
const rowsKnown = new WeakMap();

function known(row) {
  let all = rowsKnown.get(row);
  if (all) return all;
  const time = row.querySelector("time"), link = row.querySelector("a"), texts = [...row.querySelectorAll(".cut")];
  all = { time, link, texts, told: [time.dateTime, link.getAttribute("href"), link.textContent, ...texts.map(t => t.textContent)] };
  rowsKnown.set(row, all);
  return all;
}

const read = row => known(row).told;

// Only what differs is written: each text that is costs the layout of its table.
function write(row, news) {
  const { time, link, texts, told } = known(row);
  const [at, to, name, ...said] = news;
  if (told[1] === to) return;
  if (told[0] !== at) { time.dateTime = at; localTime(time); }
  link.setAttribute("href", to);
  if (told[2] !== name) link.textContent = name;
  texts.forEach((t, i) => {
    if (told[i + 3] === said[i]) return;
    t.textContent = said[i];
    if (t.hasAttribute("title")) t.title = said[i];
  });
  known(row).told = news;
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

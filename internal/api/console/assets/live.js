// Keeps a page as the yard is, over one stream, and says so when it cannot.
import { grow } from "./feed.js";
import { points } from "./lines.js";
import { clock, localTimes } from "./times.js";

// The one way by which text becomes elements: parts that our own server has rendered.
const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("eventyard", { createHTML: html => html })
  : { createHTML: html => html };

const attributes = new Set(["stroke-dasharray", "stroke-width", "aria-label", "transform", "data-at", "width", "height", "y", "d"]);
const sliceMs = 6; // of a frame, for texts
const silentMs = 13_000; // of a stream, which beats each five seconds: a cut cable closes nothing
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function follow(path) {
  const button = document.querySelector("button.live");
  const lost = document.getElementById("lost"), why = document.getElementById("lost-why");
  let source = null, timer = 0, silence = 0, tries = 0, paused = false, over = false, seen = new Date();
  button.hidden = false;

  const label = (text, state) => {
    button.firstElementChild.textContent = text;
    button.classList.toggle("lost", state === "lost");
    button.classList.toggle("paused", state === "paused");
  };
  const close = () => { source?.close(); source = null; clearTimeout(timer); clearTimeout(silence); };
  const listen = () => { clearTimeout(silence); silence = setTimeout(() => lose(""), silentMs); };

  const found = () => {
    tries = 0;
    seen = new Date();
    listen();
    if (lost.hidden) return;
    lost.hidden = true;
    document.getElementById("main").classList.remove("soft");
    label("Live", "");
  };
  const lose = reason => {
    close();
    const wait = Math.min(30, 2 ** tries++) * (0.75 + Math.random() / 2);
    why.replaceChildren(`${reason ? reason + " " : ""}You see it as it was at `, clock(seen), ".");
    localTimes(why);
    lost.hidden = false;
    document.getElementById("main").classList.add("soft");
    label("Lost", "lost");
    if (!over) timer = setTimeout(open, wait * 1000);
  };

  function open() {
    close();
    pieces.clear(); // the rest of them does not come any more
    if (paused || document.hidden) return;
    source = new EventSource(`/console/live?at=${encodeURIComponent(path)}`);
    listen();
    for (const contact of ["open", "beat"]) source.addEventListener(contact, found);
    source.addEventListener("cells", e => { found(); cells(JSON.parse(e.data)); });
    source.addEventListener("part", e => { found(); part(JSON.parse(e.data)); });
    source.addEventListener("points", e => { found(); points(JSON.parse(e.data)); });
    source.addEventListener("rows", e => { found(); rows(JSON.parse(e.data)); });
    source.addEventListener("say", e => { document.getElementById("said").textContent = JSON.parse(e.data); });
    source.addEventListener("end", e => {
      const { reason, detail } = JSON.parse(e.data);
      over = reason === "gone";
      if (reason === "signed-out") { close(); location.reload(); return; }
      lose(detail);
    });
    source.addEventListener("error", () => { lose(""); leadOut(); });
  }

  // A stream does not say why it was refused. Whose session has ended meanwhile is led to where one signs
  // in, as by every page.
  async function leadOut() {
    const answer = await fetch("/console/more", { method: "HEAD" }).catch(() => null);
    if (answer?.status === 401) location.reload();
  }

  button.addEventListener("click", () => {
    paused = !paused;
    if (paused) { close(); label("Paused", "paused"); } else { label("Live", ""); open(); }
  });
  document.getElementById("retry").addEventListener("click", () => { over = false; open(); });
  // Browsers have few connections to a host: a page that nobody sees needs none.
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  addEventListener("pagehide", close);
  open();
}

// Texts wait by id, so that the newest wins and nothing queues.
const waiting = new Map();
let asked = 0;

function cells(changed) {
  for (const [id, text] of Object.entries(changed)) waiting.set(id, text);
  if (!asked) asked = requestAnimationFrame(put);
}

function put() {
  asked = 0;
  if (late.size) return; // they are newer than the parts that they would be lost with
  const until = performance.now() + sliceMs;
  for (const [cell, text] of waiting) {
    waiting.delete(cell);
    const [id, attribute] = cell.split("@");
    const element = document.getElementById(id);
    if (element && !attribute) { if (element.textContent !== text) element.textContent = text; }
    else if (element && attributes.has(attribute) && element.getAttribute(attribute) !== text) {
      element.setAttribute(attribute, text);
      if (attribute === "data-at") localTimes(element.parentNode);
    }
    if (performance.now() > until) break;
  }
  if (waiting.size) asked = requestAnimationFrame(put);
}

// A part is replaced whole. What has an id and is elsewhere now moves there, and focus stays, and what
// was opened stays open. A long one comes in pieces. Who wants to hold one back prevents its event, and
// replaces it later.
const pieces = new Map();

function part({ id, html, more }) {
  html = (pieces.get(id) ?? "") + html;
  if (more) { pieces.set(id, html); return; }
  pieces.delete(id);
  if (document.dispatchEvent(new CustomEvent("yard:part", { cancelable: true, detail: { id, html } }))) replace({ id, html });
}

// A click is a press and a release of one element, so that what is being pressed is replaced afterwards. A
// press of which nobody hears the end is over after a while, or the page would be old and not say so.
const longestPress = 3000, late = new Map();
let pressed = null, ends = 0;

function press(event) { pressed = event.target; endPress(longestPress); }
function endPress(after) { clearTimeout(ends); ends = setTimeout(release, after); }
function release() {
  pressed = null;
  const due = [...late];
  late.clear();
  for (const [id, html] of due) replace({ id, html });
  rows();
  if (!asked) asked = requestAnimationFrame(put);
}
addEventListener("pointerdown", press, true);
addEventListener("keydown", event => { if (event.key === " ") press(event); }, true);
for (const end of ["pointerup", "pointercancel", "keyup"]) addEventListener(end, () => { if (pressed) endPress(0); }, true); // when its click was heard

// Rows that come wait while one of their list is pressed or focused: it would be another by then.
const come = [];
function rows(told) {
  if (told) come.push(told);
  const held = id => { const list = document.getElementById(id); return list?.contains(pressed) || list?.contains(document.activeElement); };
  while (come.length && (come.length > 50 || !held(come[0].id))) grow(come.shift());
}
addEventListener("focusout", () => setTimeout(rows));

// What is focused is known again by its id or by what it does, as few have an id; of several that do the
// same by their order.
const does = e => e.id || e.getAttribute("href") || e.form?.getAttribute("action") || e.getAttribute("aria-label") || e.parentNode.id;
const doing = (within, what) => [...within.querySelectorAll("a, button, input, select, summary, [tabindex]")].filter(e => does(e) === what);

export function replace({ id, html }) {
  const old = document.getElementById(id);
  if (!old) return;
  if (old.contains(pressed)) { late.set(id, html); return; }
  const opened = [...old.querySelectorAll("details[open]")].map(d => d.id);
  const active = document.activeElement, focus = old.contains(active) ? does(active) : "";
  const order = focus ? doing(old, focus).indexOf(active) : 0;
  const before = places(old);
  const made = document.createElement("template");
  made.innerHTML = policy.createHTML(html);
  localTimes(made.content);
  for (const d of made.content.querySelectorAll("details")) d.open = opened.includes(d.id);
  old.replaceChildren(made.content);
  const same = focus ? doing(old, focus) : [];
  (same[order] ?? same[0])?.focus({ preventScroll: true });
  move(old, before);
  document.dispatchEvent(new Event("yard:changed"));
}

function places(within) {
  const at = new Map();
  if (!calm.matches) for (const e of within.querySelectorAll(".chip[id]")) at.set(e.id, e.getBoundingClientRect());
  return at;
}

function move(within, before) {
  for (const [id, was] of before) {
    const element = document.getElementById(id);
    if (!element || !within.contains(element)) continue;
    const is = element.getBoundingClientRect();
    const x = was.left - is.left, y = was.top - is.top;
    if (x || y) element.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }], { duration: 300, easing: "ease-out" });
  }
}

// A list that grows at its head stays as it is for who has scrolled down, and says how much is new.
import { replace } from "./live.js";

const top = 200; // pixels from where on somebody reads

export function hold() {
  const list = document.querySelector("[data-held]");
  if (!list || list.dataset.holds) return;
  list.dataset.holds = "yes";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn main held";
  button.hidden = true;
  list.before(button);
  let held = null;
  const numbers = html => [...html.matchAll(/data-number="(\d+)"/g)].map(m => Number(m[1]));

  document.addEventListener("yard:part", event => {
    if (event.detail.id !== list.id) return;
    if (scrollY < top) { button.hidden = true; held = null; return; }
    event.preventDefault();
    held = event.detail;
    const newest = Math.max(-1, ...numbers(list.innerHTML));
    const fresh = numbers(held.html).filter(n => n > newest).length;
    button.hidden = fresh === 0;
    button.textContent = `${fresh} new`;
  });
  button.addEventListener("click", () => {
    scrollTo({ top: 0 });
    if (held) replace(held);
    held = null;
    button.hidden = true;
  });
}

// What a page does in the browser beyond what the server has drawn. Without it everything works, and
// nothing moves.
import { hold } from "./held.js";
import { keys } from "./keys.js";
import { follow } from "./live.js";
import { localTimes } from "./times.js";

function theme() {
  const root = document.documentElement;
  for (const button of document.querySelectorAll("button.theme")) {
    button.addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* for this page alone */ }
    });
  }
}

// Copying needs a script, so that its buttons are hidden before there is one. Pages change, so that
// one listener serves all of them.
function copying() {
  if (!navigator.clipboard) return;
  const show = () => { for (const b of document.querySelectorAll("button[data-copy][hidden]")) b.hidden = false; };
  show();
  document.addEventListener("yard:changed", show);
  document.addEventListener("click", async event => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    document.getElementById("said").textContent = "Copied";
  });
}

// What is secret is not left on a screen.
function hideSecrets() {
  const secrets = document.querySelectorAll("[data-secret]");
  if (secrets.length) setTimeout(() => { for (const s of secrets) {
    s.textContent = "hidden again";
    s.nextElementSibling?.remove(); // its button has a copy
  } }, 60_000);
}

theme();
copying();
hideSecrets();
keys();
localTimes(document);
hold();
if (document.body.dataset.live) follow(document.body.dataset.live);

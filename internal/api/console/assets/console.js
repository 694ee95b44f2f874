// What a page does in the browser beyond what the server has drawn. Without it everything works, and
// nothing moves.
import { hold } from "./held.js";
import { keys } from "./keys.js";
import { follow } from "./live.js";
import { switchTimes } from "./times.js";

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
  const buttons = "button:is([data-copy], [data-copy-from])";
  const show = () => { for (const b of document.querySelectorAll(`${buttons}[hidden]`)) b.hidden = false; };
  show();
  document.addEventListener("yard:changed", show);
  document.addEventListener("click", async event => {
    const button = event.target.closest(buttons);
    if (!button) return;
    const text = button.dataset.copyFrom ? await secret(button.dataset.copyFrom) : button.dataset.copy;
    if (text !== null) await navigator.clipboard.writeText(text);
    document.getElementById("said").textContent = text === null ? "Not copied" : "Copied";
  });
}

// A key that is copied is on no page: it is asked for when it is wanted.
async function secret(path) {
  const answer = await fetch(path, { method: "POST" }).catch(() => null);
  return answer?.ok ? answer.text() : null;
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
switchTimes();
hold();
document.addEventListener("yard:changed", hold); // of a page that has come whole
if (document.body.dataset.live) follow(document.body.dataset.live);

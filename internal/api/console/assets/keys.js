// Keys: g and a letter go to a page, / and Ctrl K find, ? says which keys there are. In fields letters
// are letters.
export function keys() {
  const finder = document.getElementById("finder");
  let before = "";
  document.addEventListener("keydown", event => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") return find(event);
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const link = before === "g" && document.querySelector(`.side a[data-key="${CSS.escape(event.key)}"]`);
    before = event.key;
    if (link) link.click();
    else if (event.key === "/") find(event);
    else if (event.key === "?") (document.getElementById("keys") ?? list()).showModal();
  });

  function find(event) {
    if (!finder) return;
    event.preventDefault(); // of the browser's own search
    if (finder.checkVisibility()) finder.select(); else location.href = finder.form.action;
  }
}

// list makes the list of keys, of what the links at the side say.
function list() {
  const element = (name, ...inside) => { const made = document.createElement(name); made.append(...inside); return made; };
  const pairs = element("dl"), add = (text, ...keys) => pairs.append(element("dt", ...keys.flatMap(key => [element("kbd", key), " "])), element("dd", text));
  add("find a name or an event", "Ctrl K", "/");
  for (const link of document.querySelectorAll(".side a[data-key]")) {
    const text = [...link.childNodes].find(node => node.nodeType === Node.TEXT_NODE)?.textContent.trim() ?? "";
    add(text.charAt(0).toLowerCase() + text.slice(1), "g", link.dataset.key);
  }
  add("these keys", "?");
  pairs.className = "pairs";
  const title = element("h2", "Keys"), close = element("button", "Close"), form = element("form", close), made = element("dialog", title, pairs, form);
  title.id = "keys-title";
  close.className = "btn";
  form.method = "dialog";
  made.id = "keys";
  made.setAttribute("aria-labelledby", "keys-title");
  document.body.append(made);
  return made;
}

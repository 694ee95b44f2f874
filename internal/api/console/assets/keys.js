// Keys: g and a letter go to a page, / and Ctrl K find, ? says which keys there are. In fields letters
// are letters.
export function keys() {
  const finder = document.getElementById("finder"), help = document.getElementById("keys");
  let before = "";
  document.addEventListener("keydown", event => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") return find(event);
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const link = before === "g" && document.querySelector(`.side a[data-key="${CSS.escape(event.key)}"]`);
    before = event.key;
    if (link) link.click();
    else if (event.key === "/") find(event);
    else if (event.key === "?") help?.showModal();
  });

  function find(event) {
    if (!finder) return;
    event.preventDefault(); // of the browser's own search
    if (finder.checkVisibility()) finder.select(); else location.href = finder.form.action;
  }
}

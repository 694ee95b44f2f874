// Before anything is drawn: the reader's choice of light or dark, if there is one.
(() => {
  try {
    const kept = localStorage.getItem("theme");
    if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  } catch { /* storage is off: the system's choice it is */ }
})();

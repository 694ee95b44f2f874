// Times come in UTC, and are shown as the reader's own with UTC in the title; or the other way round, for who
// switches: one button does it for all pages.
const time = { hour: "2-digit", minute: "2-digit", hour12: false }, second = { ...time, second: "2-digit" };
const kinds = { short: time, clock: second, long: { day: "numeric", month: "short", ...time }, stamp: { year: "numeric", month: "short", day: "numeric", ...second } };
const formats = timeZone => Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, new Intl.DateTimeFormat(undefined, { ...kind, timeZone })]));
const own = formats(), universal = formats("UTC");
let utc = false;
try { utc = localStorage.getItem("times") === "utc"; } catch { /* for this page alone */ }

export function localTimes(within) {
  const shown = utc ? universal : own;
  for (const t of within.querySelectorAll("text[data-at]")) t.textContent = shown[t.dataset.as ?? "short"].format(new Date(t.dataset.at * 1000));
  for (const t of within.querySelectorAll("time[data-as]")) localTime(t);
}

export function localTime(t) {
  const at = new Date(t.dateTime);
  if (Number.isNaN(at.valueOf())) return;
  t.title = utc ? `${own.stamp.format(at)}, your time` : at.toISOString().replace("T", " ").replace("Z", " UTC");
  t.textContent = (utc ? universal : own)[t.dataset.as].format(at);
}

// A time of now, which goes on as all others do.
export function clock(at) {
  const t = document.createElement("time");
  t.dateTime = at.toISOString();
  t.dataset.as = "clock";
  return t;
}

export function switchTimes() {
  const button = document.querySelector("button.times");
  if (!button) return;
  button.hidden = false;
  button.title = "Times in UTC, or your own";
  const show = () => { button.setAttribute("aria-pressed", utc); localTimes(document); };
  button.addEventListener("click", () => {
    utc = !utc;
    try { localStorage.setItem("times", utc ? "utc" : "own"); } catch { /* for this page alone */ }
    show();
  });
  show();
}

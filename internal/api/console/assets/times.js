// Times come in UTC, and are shown as the reader's own, with UTC in the title.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const stamp = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const short = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });

export function localTimes(within) {
  for (const t of within.querySelectorAll("text[data-at]")) t.textContent = short.format(new Date(t.dataset.at * 1000));
  for (const t of within.querySelectorAll("time[data-as]")) {
    const at = new Date(t.dateTime);
    if (Number.isNaN(at.valueOf())) continue;
    t.title = at.toISOString().replace("T", " ").replace("Z", " UTC");
    t.textContent = (t.dataset.as === "clock" ? clock : stamp).format(at);
  }
}

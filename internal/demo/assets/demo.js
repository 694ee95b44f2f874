// Keeps a page moving: once a second it asks for the page again, and replaces the parts that changed.
// A part in which somebody is pressing or typing is left alone until he is done.
const busy = (part) => part.matches(":active") || part.querySelector(":active, :focus-visible");

async function refresh() {
  try {
    const answer = await fetch(location.pathname, { cache: "no-store" });
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[id]:not(#main)")) {
      const fresh = next.getElementById(part.id);
      if (fresh && fresh.outerHTML !== part.outerHTML && !busy(part)) part.replaceWith(document.adoptNode(fresh));
    }
  } catch {
    document.getElementById("live")?.classList.add("lost"); // the demo has ended
  }
}

setInterval(refresh, 1000);

package console

import (
	"testing"

	"github.com/chromedp/cdproto/input"
)

// playedStream stands in the place of a page's stream, and says what a test has it say.
const playedStream = `window.streams = [];
window.EventSource = class extends EventTarget {
	constructor() { super(); streams.push(this); }
	close() {}
	tell(name, data) { this.dispatchEvent(Object.assign(new Event(name), {data: JSON.stringify(data)})); }
};`

// V4: of a long part whose stream ends amid it nothing is left when the next stream brings it whole.
func TestAStreamThatEndsAmidAPart(t *testing.T) {
	y := newYard(t)
	p := newPage(t, y.base, 1280, "light")
	p.inject("play the yard", playedStream)
	p.open("/console/storage")
	p.await("a stream", `streams.length === 1`)
	p.run("end it amid a part", evaluate(`streams[0].tell("part", {id: "part-all", html: "<p>half of it", more: true}); streams[0].tell("error"); document.getElementById("retry").click(); 0`))
	p.await("another stream", `streams.length === 2`)
	p.run("bring it whole", evaluate(`streams[1].tell("part", {id: "part-all", html: "<p>all of it</p>"}); 0`))
	p.await("the part", `document.getElementById("part-all").innerHTML === "<p>all of it</p>"`)
}

// V4: what somebody is pressing is not replaced before they let go of it: a part that comes meanwhile comes
// then, with what has changed of it since.
func TestAPartThatIsPressed(t *testing.T) {
	y := newYard(t)
	p := newPage(t, y.base, 1280, "light")
	p.inject("play the yard", playedStream)
	for _, until := range []input.MouseType{input.MouseReleased, ""} { // and one that is never let go of
		p.open("/console/hubs")
		p.await("a stream", `streams.length === 1`)
		x, y := spot(p, "#part-list .name a")
		mouse := func(kind input.MouseType) *input.DispatchMouseEventParams {
			return input.DispatchMouseEvent(kind, x, y).WithButton(input.Left).WithClickCount(1)
		}
		p.run("press it, and bring another", mouse(input.MousePressed),
			evaluate(`streams[0].tell("part", {id: "part-list", html: "<p id=came>another</p>"}); streams[0].tell("cells", {came: "newer"}); 0`))
		if until != "" {
			p.await("what is pressed", `document.getElementById("came") === null`)
			p.run("let go of it", mouse(until))
			p.await("where it leads", `location.pathname === "/console/hubs/orders"`)
			continue
		}
		p.await("the other, with what is newer", `document.getElementById("came")?.textContent === "newer"`)
	}
}

// V4: a text or an attribute that is as it was is not written again: each that is costs a layout. Of a list that grows
// no text is written that the row above had as well, and each row says what it should.
func TestWhatIsAsItWasIsNotWritten(t *testing.T) {
	y := newYard(t)
	for _, body := range []string{"one", "two", "three"} {
		y.send(t, body)
	}
	p := newPage(t, y.base, 1280, "light")
	p.inject("play the yard", playedStream)
	p.open("/console/hubs/orders/events")
	p.await("a stream", `streams.length === 1 && document.querySelectorAll("#tail tr").length === 3`)
	p.run("say the same, and another", evaluate(`window.written = [];
		new MutationObserver(all => written.push(...all.map(m => m.target.id || m.target.className))).observe(document.querySelector("main"), {subtree: true, childList: true, characterData: true});
		streams[0].tell("part", {id: "part-yard", html: "<i id=same>same</i><i id=other>other</i>"});
		streams[0].tell("cells", {same: "same", other: "new"}); 0`))
	p.await("the other", `document.getElementById("other").textContent === "new"`)
	p.await("that alone", `written.includes("other") && !written.includes("same")`)
	row := `["2026-01-31T12:00:00Z", "/console/hubs/orders/events?show=0/9", "0 / 9", "", "three"]`
	p.run("bring a row", evaluate(`window.bodies = () => [...document.querySelectorAll("#tail tr")].map(r => r.querySelector(".cut.small").textContent).join();
		window.was = bodies(); streams[0].tell("rows", {id: "tail", rows: [`+row+`], more: ""}); 0`))
	p.await("it, before those that were there", `bodies() === "three," + was && document.querySelector("#tail a").textContent === "0 / 9" && document.querySelector("#tail time").dateTime === "2026-01-31T12:00:00Z"`)
	p.run("bring another", evaluate(`streams[0].tell("rows", {id: "tail", rows: [`+row+`.map(s => s.replace("three", "four").replace("9", "10"))], more: ""}); 0`))
	p.await("both", `bodies() === "four,three," + was && new Set([...document.querySelectorAll("#tail a")].map(a => a.getAttribute("href"))).size === 5`)
}

package console

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/eventyard/eventyard/test/parts"
)

// V4: times are the reader's own with UTC in the title, and one button makes it the other way round, for all pages, for
// what comes later, and by keyboard, too.
func TestTimesAreLocalOrUTC(t *testing.T) {
	y := newYard(t)
	y.send(t, "at some time")
	v := newVisitor(t, y.base, keyboard{})
	v.run("move to Tokyo", emulation.SetTimezoneOverride("Asia/Tokyo"))
	v.visit("hubs/orders/events")
	const first = `document.querySelector("#tail time")`
	hour := func(ahead string) string { // of the first event, as it is shown
		return `Number(` + first + `.textContent.slice(0, 2)) % 24 === (Number(` + first + `.dateTime.slice(11, 13)) + ` + ahead + `) % 24`
	}
	v.await("times in Tokyo", hour("9")+` && `+first+`.title.endsWith(" UTC") && document.querySelector("button.times").getAttribute("aria-pressed") === "false"`)
	v.push(v.page, "button.times")
	v.await("times in UTC", hour("0")+` && `+first+`.title.endsWith("your time") && document.querySelector("button.times").getAttribute("aria-pressed") === "true"`)
	v.check(parts.Axe(t), "times-utc")
	v.visit("hubs/orders/events")
	v.await("times in UTC on the next page", hour("0"))
	y.send(t, "a little later")
	v.await("an event that came later", contains("a little later")+" && "+hour("0"))
	v.push(v.page, "button.times")
	v.await("times in Tokyo again", hour("9"))
}

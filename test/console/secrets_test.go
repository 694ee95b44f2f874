package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// soonHidden has a minute of the page's pass at once, after it was said that it began.
const soonHidden = `window.minutes = []; const timeout = window.setTimeout;
	window.setTimeout = (what, ms, ...more) => ms === 60_000 ? window.minutes.push(what) : timeout(what, ms, ...more);`

// V3: keys that were shown are on the page for a minute, and then neither they nor a button that copies them; and no
// other minute has to pass for that.
func TestSecretsAreHiddenAfterAMinute(t *testing.T) {
	y := newYard(t)
	made := testkit.Value(y.client.CreatePolicy(t.Context(), "", admin.PolicyRequest{Name: "gateway", Rights: []string{"send"}}))(t)
	p := newPage(t, y.base, 1280, "light")
	p.inject("a minute that passes when it is told to", soonHidden)
	p.open("/console/access?policy=gateway")
	p.press(`main form[action$="/gateway/reveal"] button`, made.PrimaryKey)
	p.await("the keys, with buttons", `window.minutes.length === 1 && [...document.querySelectorAll("[data-secret]")].every(s => s.nextElementSibling?.dataset.copy)`)
	var secrets int
	p.run("let the minute pass", chromedp.Evaluate(`document.querySelectorAll("[data-secret]").length`, &secrets), evaluate(`window.minutes[0](); 0`))
	testkit.That(t, secrets >= 2, "the page has %d secrets", secrets)
	p.await("that they are hidden", fmt.Sprintf(`[...document.querySelectorAll("[data-secret]")].filter(s => s.textContent === "hidden again").length === %d`, secrets))
	for _, key := range []string{made.PrimaryKey, made.SecondaryKey} {
		p.await("a page without the key", fmt.Sprintf(`!document.documentElement.outerHTML.includes(%s)`, quoted(key)))
	}
}

// V4: on a phone an event is a page of its own, and beside a list elsewhere; the tabs lead back to the list.
func TestAnEventIsAPageOfItsOwnOnAPhone(t *testing.T) {
	y := newYard(t)
	testkit.Must(t, testkit.Err(y.client.Send(t.Context(), "orders", admin.Batch{Events: eventsOf(t, "glass"), Partition: "0"})))
	for width, lists := range map[int]bool{390: false, 1280: true} {
		p := newPage(t, y.base, width, "light")
		p.open("/console/hubs/orders/events?show=0/0")
		p.await("the event, and at 1280 the list", fmt.Sprintf(`document.querySelector("#shown pre").checkVisibility() && document.querySelector("#part-list").checkVisibility() === %t && document.querySelector("form.bar").checkVisibility() === %t`, lists, lists))
		p.await("the way to the list", `document.querySelector('main nav.tabs a[href="/console/hubs/orders/events"]').checkVisibility()`)
		p.open("/console/hubs/orders/events")
		p.await("the list", `document.querySelector("#part-list").checkVisibility() && document.querySelector("form.bar").checkVisibility()`)
	}
}

package console

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// V4: Ctrl K, or a slash, finds a name or an event; g and a letter go to a page; a question mark lists
// the keys; and in a field letters are letters.
func TestFindingByKeys(t *testing.T) {
	y := newYard(t)
	y.furnish(t)
	p := newPage(t, y.base, 1280, "light")
	press := func(keys string, options ...chromedp.KeyOption) {
		t.Helper()
		p.run("type "+keys, chromedp.KeyEvent(keys, options...))
	}
	at := func(path string) string {
		return `location.pathname === "` + path + `" && document.readyState === "complete"`
	}
	p.open("/console/")
	p.await("the whole page", at("/console/"))
	press("gt")
	p.await("the topics", at("/console/topics"))
	press("k", chromedp.KeyModifiers(2)) // Ctrl
	p.await("the finder", `document.activeElement.id === "finder"`)
	press("mail?gh" + kb.Backspace + kb.Backspace + kb.Backspace + kb.Enter)
	p.await("the one subscription", at("/console/topics/shop/subscriptions/mailer"))
	press("/")
	p.await("the finder", `document.activeElement.id === "finder"`)
	press("no-such-id" + kb.Enter)
	p.await("where an event is looked for", at("/console/events")+" && "+contains("Not found"))
	press("?")
	p.await("the keys", `document.getElementById("keys").open && `+contains("find a name or an event"))
	press(kb.Escape)
	p.await("no keys", `!document.getElementById("keys").open`)
	checkPages(t, y, "find?q=o")
}

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
	// A condition with an operator that does not exist is not searched for: what is wrong is said, and what there is.
	p.open("/console/hubs/orders/events")
	p.fill(map[string]string{"find": "data.total NumberGreatest 40"})
	p.press(`main form.bar button`, `there is no operator "NumberGreatest"`)
	p.await("the operators that there are", contains("StringContains")+" && "+contains("in double quotes")+" && !"+contains("Nothing found"))
	p.fill(map[string]string{"find": "data.total NumberGreaterThan 40"})
	p.press(`main form.bar button`, "1 event of")
	checkPages(t, y, "find?q=o", "hubs/orders/events?find=data.total+NumberGreatest+40")
}

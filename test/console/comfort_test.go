package console

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/test/parts"
)

// marks is true of a page on which all that says something by its ground alone can be told from the page.
const marks = `[...document.querySelectorAll(".dot, .swatch, .switch span, :is(.side, .tabs, .seg) [aria-current]")].filter(e => e.checkVisibility())
	.every(e => getComputedStyle(e).backgroundColor !== getComputedStyle(document.body).backgroundColor)`

// V4: with text of twice the size, with the system's own colours and without motion each page is whole:
// nothing is scrolled sideways, nobody is kept out, and nothing moves.
func (y *stocked) comfort(t *testing.T) {
	axe := parts.Axe(t)
	paths := []string{"topics/alarms/subscriptions/guard"}
	if *all {
		paths = append(paths, "", "hubs/orders/groups/billing", "hubs/orders/groups/billing/move", "hubs", "hubs/orders", "hubs/orders/events", "hubs/orders/partitions/0/events/0", "hubs/orders/groups", "hubs/orders/access", "hubs/orders/settings",
			"topics", "topics/shop", "topics/shop/subscriptions/company/dead", "functions", "functions/resize", "events", "activity", "access", "storage", "more", "find", "docs/guides/first")
	}
	media := func(name, value string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: name, Value: value}})
	}
	for _, c := range []struct {
		name string
		set  chromedp.Action
		is   string
	}{
		{"large", cdpage.SetFontSizes(&cdpage.FontSizes{Standard: 32, Fixed: 26}), `getComputedStyle(document.documentElement).fontSize === "32px"`},
		{"forced", media("forced-colors", "active"), `matchMedia("(forced-colors: active)").matches && ` + marks},
		{"calm", media("prefers-reduced-motion", "reduce"), `document.getAnimations().length === 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVisitor(t, y.base, mouse{})
			v.run("set "+c.name, c.set)
			for _, path := range paths {
				v.visit(path)
				v.await(c.name+" "+path, c.is)
				v.check(axe, c.name+"-"+path)
			}
		})
	}
}

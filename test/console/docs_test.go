package console

import "testing"

// V4: the docs are in the console, with the reader's hub in the commands, and lead from page to page.
func TestDocsInTheConsole(t *testing.T) {
	y := newYard(t)
	p := newPage(t, y.base, 1280, "light")
	p.open("/console/hubs")
	p.press(`main a[href="/console/docs/guides/clients"]`, "Connecting Event Hubs clients")
	p.press(`.toc a[href="/console/docs/guides/first"]`, "eventyard send orders")
	p.press(`main article a[href="/console/docs/guides/grid"]`, "Topics and webhooks")
	p.open("/console/docs")
	p.fill(map[string]string{"q": "first webhook"})
	p.press(`main form button`, "A first webhook")
	paths := []string{"docs?q=lease", "docs/guides/first", "docs/concepts/delivery"}
	if *all {
		paths = append(paths, "docs", "docs/tutorials/orders", "docs/guides/access", "docs/reference/definitions")
	}
	checkPages(t, y, paths...)
}

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/eventyard/eventyard/internal/testkit"
)

// hands do what people do with a page.
type hands interface {
	// push presses a button or follows a link.
	push(p *page, selector string)
	// enter writes into a field, in place of what it has.
	enter(p *page, selector, text string)
	// pick chooses from a list, by the value.
	pick(p *page, selector, value string)
}

// visitor is somebody at a page.
type visitor struct {
	*page
	hands
	still bool // no script runs
}

func newVisitor(t *testing.T, base string, with hands) *visitor {
	t.Helper()
	return &visitor{page: newPage(t, base, 1280, "light"), hands: with}
}

// visit goes to a page.
func (v *visitor) visit(path string) {
	v.t.Helper()
	v.open("/console/" + path)
	v.await("the whole of "+path, settled)
}

// press presses what leads to another page, and waits until an expression is true of that.
func (v *visitor) press(selector, leadsTo string) {
	v.t.Helper()
	v.run("mark the page", evaluate(`window.left = false; 0`))
	v.push(v.page, selector)
	v.await(selector+" leads to "+leadsTo, `window.left === undefined && `+settled+` && `+leadsTo)
}

// write fills in a field of a form by its name.
func (v *visitor) write(field, text string) {
	v.t.Helper()
	v.enter(v.page, named(field), text)
}

// choose chooses from a list of a form by its name.
func (v *visitor) choose(field, value string) {
	v.t.Helper()
	v.pick(v.page, named(field), value)
}

// stands waits until the address is that of a page.
func (v *visitor) stands(path string) {
	v.t.Helper()
	v.await("being at "+path, `location.pathname === `+quoted("/console/"+path)+` && `+settled)
}

// shows is true of a page with an element.
func shows(selector string) string {
	return `document.querySelector(` + quoted(selector) + `) !== null`
}

// done is true of a page that says what was done before.
func done(what string) string {
	return `new URLSearchParams(location.search).get("done") === ` + quoted(what) + ` && ` + shows(`main .note.good[role="status"]`)
}

// times is true of a page that says how often it was done.
func times(n int) string {
	return fmt.Sprintf(`new URLSearchParams(location.search).get("n") === "%d"`, n)
}

func named(field string) string { return fmt.Sprintf(`main [name="%s"]`, field) }

func quoted(text string) string {
	q, _ := json.Marshal(text) // texts only
	return string(q)
}

// mouse is a pair of hands that writes what has to be written, and does all else by the mouse.
type mouse struct{}

func (mouse) push(p *page, selector string) {
	p.t.Helper()
	x, y := spot(p, selector)
	p.run("click "+selector, chromedp.MouseClickXY(x, y))
}

func (mouse) enter(p *page, selector, text string) {
	p.t.Helper()
	x, y := spot(p, selector)
	p.run("write into "+selector, chromedp.MouseClickXY(x, y, chromedp.ClickCount(3)), chromedp.KeyEvent(text)) // thrice: all of it
}

// pick sets the value: an open list is drawn by the system, beside the page.
func (mouse) pick(p *page, selector, value string) {
	p.t.Helper()
	spot(p, selector)
	p.run("choose "+value, evaluate(fmt.Sprintf(`document.querySelector(%s).value = %s; 0`, quoted(selector), quoted(value))))
}

// spot is where a mouse meets an element, and nothing that lies over it. The page is scrolled if need be.
func spot(p *page, selector string) (x, y float64) {
	p.t.Helper()
	var at []float64
	testkit.Eventually(p.t, "a mouse reaches "+selector, func() bool {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		defer cancel()
		err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(`(() => {
			const e = document.querySelector(%s);
			const meet = () => {
				const r = e?.getClientRects()[0];
				if (!r) return [];
				const x = r.left + r.width / 2, y = r.top + r.height / 2;
				return e.contains(document.elementFromPoint(x, y)) ? [x, y] : [];
			};
			const at = meet();
			if (at.length) return at;
			e?.scrollIntoView({block: "center", behavior: "instant"});
			return meet();
		})()`, quoted(selector)), &at))
		return err == nil && len(at) == 2
	})
	return at[0], at[1]
}

// keyboard is a pair of hands without a mouse.
type keyboard struct{}

func (k keyboard) push(p *page, selector string) {
	p.t.Helper()
	k.reach(p, selector)
	p.run("press Enter", chromedp.KeyEvent(kb.Enter))
}

// enter writes: what a field has is selected where Tab leads into it.
func (k keyboard) enter(p *page, selector, text string) {
	p.t.Helper()
	k.reach(p, selector)
	p.run("write into "+selector, chromedp.KeyEvent(text))
}

func (k keyboard) pick(p *page, selector, value string) {
	p.t.Helper()
	k.reach(p, selector)
	chosen := `document.activeElement.value === ` + quoted(value)
	k.repeat(p, kb.Home, kb.ArrowDown, chosen, "choose "+value)
}

// reach presses Tab until an element has the focus, and is seen to have it.
func (k keyboard) reach(p *page, selector string) {
	p.t.Helper()
	p.await("there is "+selector, `document.querySelector(`+quoted(selector)+`)?.checkVisibility() === true`)
	k.repeat(p, "", kb.Tab, `document.activeElement.matches(`+quoted(selector)+`)`, "reach "+selector)
	p.await("a frame around "+selector, `getComputedStyle(document.activeElement).outlineStyle !== "none"`)
}

// maxKeys is how often a key is pressed before it is clear that it leads nowhere.
const maxKeys = 200

// repeat presses a key, and then another again and again until an expression is true.
func (keyboard) repeat(p *page, first, key, until, what string) {
	p.t.Helper()
	for range maxKeys {
		var is bool
		p.run(what, chromedp.KeyEvent(first), chromedp.Evaluate(until, &is))
		if is {
			return
		}
		first = key
	}
	p.t.Fatalf("%s: not by %d keys", what, maxKeys)
}

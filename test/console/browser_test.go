package console

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/eventyard/eventyard/internal/testkit"
)

// patience bounds what a page may take on a busy machine.
const patience = time.Minute

// page is a page of a browser.
type page struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu         sync.Mutex
	complaints []string // what the browser said of it; guarded by mu
}

// newPage opens a page that counts how often a part of it was replaced, with an address to begin with.
func newPage(t *testing.T, base string, width int, scheme string) *page {
	t.Helper()
	p := newBarePage(t, base, width, scheme)
	p.inject("count changes", `window.changes = 0; document.addEventListener("yard:changed", () => window.changes++)`)
	return p
}

// newBarePage opens a page that is alone in its window, as who has signed in nowhere yet.
func newBarePage(t *testing.T, base string, width int, scheme string) *page {
	t.Helper()
	p := &page{t: t, ctx: newWindow(t), base: base}
	testkit.Must(t, chromedp.Run(p.ctx)) // the page lives as long as the context of what is run first
	chromedp.ListenTarget(p.ctx, p.hear)
	p.run("prepare the page", network.Enable(), log.Enable(), runtime.Enable(),
		emulation.SetFocusEmulationEnabled(true), // whichever window the browser has before the others
		chromedp.EmulateViewport(int64(width), 900),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
	return p
}

// inject has a script run at the beginning of each page that is opened from now on.
func (p *page) inject(what, script string) {
	p.t.Helper()
	p.run(what, chromedp.ActionFunc(func(ctx context.Context) error {
		return testkit.Err(cdpage.AddScriptToEvaluateOnNewDocument(script).Do(ctx))
	}))
}

// hear takes note of messages of the page, reports of its policy and requests that failed.
func (p *page) hear(event any) {
	complaint := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Request.Method != http.MethodGet {
			cover(e.Request.Method, e.Request.URL)
		}
	case *log.EventEntryAdded:
		complaint = e.Entry.Text + " " + e.Entry.URL
	case *runtime.EventConsoleAPICalled:
		complaint = fmt.Sprintf("console.%s", e.Type)
	case *runtime.EventExceptionThrown:
		complaint = e.ExceptionDetails.Error()
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" { // a stream is cut when its page is left
			complaint = e.ErrorText
		}
	}
	if complaint != "" {
		p.mu.Lock()
		p.complaints = append(p.complaints, complaint)
		p.mu.Unlock()
	}
}

func (p *page) run(what string, actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// open goes to a page and waits until its script has begun, and all of it is there: on a busy machine it may come
// by its stream.
func (p *page) open(path string) {
	p.t.Helper()
	p.run("open "+path, chromedp.Navigate(p.base+path), chromedp.WaitReady("main"), chromedp.WaitNotPresent(".looking"))
}

// await waits until a script's expression is true. It asks again and again: a script that waits in the
// page would need eval, which the page does not allow, and end with it.
func (p *page) await(what, expression string) {
	p.t.Helper()
	testkit.Eventually(p.t, what, func() (is bool) {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		defer cancel()
		err := chromedp.Run(ctx, chromedp.Evaluate(expression, &is)) // fails where a page is being left
		return err == nil && is
	})
}

func (p *page) text() (text string) {
	p.t.Helper()
	p.run("read the page", chromedp.Evaluate(`document.body.innerText`, &text))
	return text
}

// fill writes into fields by name.
func (p *page) fill(fields map[string]string) {
	p.t.Helper()
	for name, value := range fields {
		p.run("fill "+name, chromedp.SetValue(fmt.Sprintf(`main [name="%s"]`, name), value, chromedp.ByQuery))
	}
}

// settled is true of a page that is complete and, where it is kept live, has had each part once: parts
// come in the stead of what was there, and what is just being found would be gone.
const settled = `document.readyState === "complete" && (window.changes === undefined || !document.body.dataset.live ||
	window.changes >= [...document.querySelectorAll('[id^="part-"]')].filter(e => e.innerHTML.trim()).length)`

// press presses a button or a link, and waits until the page says something.
func (p *page) press(selector, says string) {
	p.t.Helper()
	p.await("the whole page", settled)
	mouse{}.push(p, selector)
	p.await(says, `document.readyState === "complete" && `+contains(says))
}

// contains is true of a page that says something.
func contains(says string) string {
	text, _ := json.Marshal(says) // texts only
	return fmt.Sprintf(`document.body.innerText.includes(%s)`, text)
}

// tooWide are the elements for which a page has to be scrolled sideways, by tag and class; what is cut off or
// scrolled by itself is none of them.
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")].filter(e => {
	for (let p = e.parentElement; p !== document.body; p = p.parentElement) if (getComputedStyle(p).overflowX !== "visible") return false;
	return e.getBoundingClientRect().right > innerWidth;
}).map(e => e.tagName.toLowerCase() + "." + e.getAttribute("class")).slice(-8)`

// check looks for complaints, for what keeps people out, and for what has to be scrolled sideways; and
// keeps a picture, where somebody wants to look at them.
func (p *page) check(axe, picture string) {
	p.t.Helper()
	var wide []string
	var at string
	var found []struct {
		ID    string
		Help  string
		Nodes []struct{ HTML string }
	}
	p.run("check the page",
		chromedp.Location(&at),
		chromedp.Evaluate(tooWide, &wide),
		chromedp.Evaluate(axe+`; 0`, nil),
		chromedp.Evaluate(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]}).then(r => r.violations.map(v => ({ID: v.id, Help: v.help, Nodes: v.nodes.map(n => ({HTML: n.html}))})))`,
			&found, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	cover(http.MethodGet, at)
	testkit.That(p.t, len(wide) == 0, "%s has to be scrolled sideways because of %q", picture, wide)
	for _, f := range found {
		p.t.Errorf("%s: %s: %v", f.ID, f.Help, f.Nodes)
	}
	if wanted := flag.Lookup("test.artifacts"); wanted != nil && wanted.Value.String() == "true" {
		p.keep(picture)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.complaints {
		p.t.Errorf("the browser says: %s", c)
	}
}

// tooLow are the buttons, choices and fields of a page that are seen and not 32 px high, as a finger wants them; what
// stands in the head and in a line of text is none of them.
const tooLow = `[...document.querySelectorAll("main :is(.btn, .seg a, .seg button, .seg label, select, input[type=text], input[type=search], input[type=number], textarea), .tabbar a")].filter(e => {
	const box = e.getBoundingClientRect();
	return box.width > 0 && box.height > 0 && box.height < 31.5;
}).map(e => e.outerHTML.slice(0, 120) + " is " + e.getBoundingClientRect().height)`

// checkTargets looks for what a finger misses on a phone.
func (p *page) checkTargets(path string) {
	p.t.Helper()
	var low []string
	p.run("measure what can be pressed", chromedp.Evaluate(tooLow, &low))
	testkit.That(p.t, len(low) == 0, "/console/%s has on a phone what is less than 32 px high:\n%s", path, strings.Join(low, "\n"))
}

// keep keeps a picture.
func (p *page) keep(picture string) {
	p.t.Helper()
	var png []byte
	p.run("take a picture", chromedp.FullScreenshot(&png, 100))
	testkit.Must(p.t, os.WriteFile(filepath.Join(p.t.ArtifactDir(), fileName(picture)+".png"), png, 0o644))
}

// fileName is what the picture of a page is kept as: paths may be longer than the names of files.
func fileName(picture string) string {
	name := strings.ReplaceAll(picture, "/", "_")
	if len(name) > 200 {
		name = fmt.Sprintf("%s-%08x-%s", name[:80], crc32.ChecksumIEEE([]byte(name)), name[len(name)-80:])
	}
	return name
}

// forgive forgets what the browser has said so far.
func (p *page) forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = nil
}

// signIn signs in by the page for it.
func (p *page) signIn(policy, key string) {
	p.t.Helper()
	p.open("/console/signin")
	p.fill(map[string]string{"policy": policy, "key": key})
	p.press(`main form button`, "signed in as "+policy)
}

// evaluate runs a script for what it does.
func evaluate(script string) chromedp.Action { return chromedp.Evaluate(script, nil) }

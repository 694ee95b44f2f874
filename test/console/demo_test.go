package console

import (
	"regexp"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

var leversLine = regexp.MustCompile(`(?m)^  levers +(http\S+)/$`)

// S, V4: the demo's own pages are whole at a desk and on a phone: the levers, a resident's page that moves,
// and the mailbox. A consumer is killed by its button, and the books balance in the end.
func TestPagesOfTheDemo(t *testing.T) {
	axe := parts.Axe(t)
	d := startProgram(t, "Ctrl-C ends it", eventyard(t), "demo", "--homes", "240", "--every", "4s", "--lease", "8s", "--consumers", "3",
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0")
	base := found(t, d.Printed(), leversLine)
	for _, screen := range screens() {
		p := newPage(t, base, screen.width, screen.scheme)
		for _, page := range []struct{ path, says string }{{"/", "The books"}, {"/homes/h-000000", "The last hour"}, {"/mailbox", "No notice yet"}} {
			p.open(page.path)
			p.await(page.says, contains(page.says))
			p.check(axe, "demo"+page.path+"-"+screen.String())
		}
	}
	p := newPage(t, base, 1280, "light")
	p.open("/homes/h-000000")
	p.await("a page that moves", `(window.before ??= document.getElementById("main").innerHTML) !== document.getElementById("main").innerHTML`)
	p.open("/")
	p.press(`#lanes form[action="/levers/kill"] button`, "killed consumer-")
	testkit.Must(t, d.End("TERM"))
	testkit.That(t, strings.Contains(d.Printed(), "The books balance."), "it ended with %s", parts.Tail(d.Printed(), 2000))
}

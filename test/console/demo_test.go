package console

import (
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

var leversLine = regexp.MustCompile(`(?m)^  levers +(http\S+)/$`)

// S, V4: the demo's own pages are whole at a desk and on a phone: the levers, a resident's page that moves,
// and the mailbox. A consumer is killed by its button, and the books balance in the end. F6, F7: the circuit opens, and the
// link of its notice resumes.
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
	p.open("/")
	p.press(`#acts-circuit form[action="/levers/circuit"] button`, "The scorer's store is away since")
	p.open("/homes/h-000000")
	p.await("a page that moves", `(window.before ??= document.getElementById("main").innerHTML) !== document.getElementById("main").innerHTML`)
	p.open("/")
	p.press(`#lanes form[action="/levers/kill"] button`, "killed consumer-")
	p.await("an open circuit", contains("The notice is in the mailbox"))
	p.press(`#acts-circuit form[action="/levers/store"] button`, "The circuit stays open until somebody resumes it")
	p.open("/mailbox")
	p.await("the notice", contains("Resume"))
	mouse{}.push(p, "#rooms a")
	p.await("what the link leads to", `location.pathname.startsWith("/resume/")`)
	p.press("form button", "Resumed")
	p.open("/")
	p.await("a scorer that works again", contains("score-anomaly works"))
	testkit.Must(t, d.End("TERM"))
	testkit.That(t, strings.Contains(d.Printed(), "The books balance."), "it ended with %s", parts.Tail(d.Printed(), 2000))
}

// S: the demo as its help shows it, of its real size and with its levers, ends well and its books balance. It says the
// figures, and judges none: how much of what was promised was sent before and after the levers, how soon partitions had new
// owners, and how much of the machine it took.
func TestTheDemoAtItsSize(t *testing.T) {
	long(t)
	called := time.Now()
	cmd := exec.CommandContext(t.Context(), eventyard(t), "demo", "--for", "60s", "--levers", "kill,co,webhook,poison,circuit,plug",
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0") // the ports are its own: others may be at its usual ones
	cmd.Dir = t.TempDir()
	printed, err := cmd.CombinedOutput()
	lasted, said := time.Since(called), string(printed)
	testkit.Must(t, err, "it ended with %s", parts.Tail(said, 4000))
	testkit.That(t, strings.HasSuffix(said, "The books balance.\n"), "it ended with %s", parts.Tail(said, 4000))
	var before, after []string
	carbon := false
	for line := range strings.Lines(said) {
		carbon = carbon || strings.Contains(line, "a sensor for carbon monoxide")
		if share := ofPromised.FindStringSubmatch(line); share == nil {
			continue
		} else if carbon {
			after = append(after, share[1])
		} else {
			before = append(before, share[1])
		}
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("of what was promised it sent %v %% before each home had a sensor for carbon monoxide, and %v %% from then on", before, after)
	t.Logf("%s; it took %.0f %% of %d processors in %s", found(t, said, ownersLine), 100*used.Seconds()/lasted.Seconds()/float64(runtime.NumCPU()), runtime.NumCPU(), lasted.Round(time.Second))
	t.Log(parts.Tail(said, 2000))
}

var (
	ofPromised = regexp.MustCompile(`\((\d+) % of what was promised\)`)
	ownersLine = regexp.MustCompile(`(?m)^kill +(.*)$`)
)

// V4: how soon the demo, as it is without flags, has a home on its page: from the command to its first words, and to
// the page that is linked, as a reader presses. It says the figures, and judges none.
func TestHowSoonTheDemoShowsAHome(t *testing.T) {
	long(t)
	program := eventyard(t)
	newWindow(t) // so that the browser is there
	for range 3 {
		called := time.Now()
		d := startProgram(t, "Ctrl-C ends it", program, "demo", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0")
		said := time.Since(called)
		p := newPage(t, found(t, d.Printed(), leversLine), 1280, "light")
		p.open("/")
		mouse{}.push(p, `a[href^="/homes/"]`)
		p.await("a home", contains("The last hour"))
		shown := time.Since(called)
		testkit.Must(t, d.End("TERM"))
		testkit.That(t, strings.Contains(d.Printed(), "The books balance."), "it ended with %s", parts.Tail(d.Printed(), 2000))
		t.Logf("the demo says its addresses after %s; a home is on its page after %s; %s", said.Round(time.Millisecond), shown.Round(time.Millisecond), found(t, d.Printed(), firstLine))
	}
}

var firstLine = regexp.MustCompile(`(?m)(the first home was on its page .*)$`)

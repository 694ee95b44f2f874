package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/pages"
)

var (
	minutes     = flag.Bool("minutes", false, "time what README tells to type, from a clone on; for a machine that does nothing else")
	minutesCold = flag.Bool("minutes.cold", false, "with -minutes: build with an empty build cache, and judge no time")
)

// What is promised: by the clock, without the time that typing takes, and with modules and a build cache on the machine.
const (
	toFirstEvent = time.Minute
	toDemo       = 2 * time.Minute
	toFirstHome  = 10 * time.Second // from the command
)

// V7, S: from a clone to a first event and to the demo, by what README tells to type.
func TestMinutesFromAClone(t *testing.T) {
	if !*minutes {
		t.Skip("its times are those of a machine that does nothing else: make minutes runs it")
	}
	clone, began := filepath.Join(t.TempDir(), "eventyard"), time.Now()
	testkit.Must(t, testkit.Err(shell(t, ".", "git clone --quiet \"$(git rev-parse --show-toplevel)\" "+clone)))
	t.Logf("cloned after %s", sinceIn(began))

	page := filepath.Join(clone, "README.md")
	blocks := testkit.Value(pages.Read(page))(t)
	build := slices.IndexFunc(blocks, func(b pages.Block) bool { return strings.HasPrefix(b.Text, "make build") })
	testkit.MustThat(t, build >= 0, "README does not say how it is built")
	out := testkit.Value(shell(t, clone, blocks[build].Text+"\necho \"$PATH\""))(t)
	t.Logf("built after %s", sinceIn(began))

	r := newReader(t)
	r.Dir, r.Env = clone, append(r.Env, "PATH="+lastLine(out))
	r.Follow(t, page)
	event := time.Since(began)
	t.Logf("all of README done after %s", sinceIn(began))

	called := time.Now()
	follow(t, r, "<!-- background: demo -->\n```sh\neventyard demo --listen 127.0.0.1:0 --http 127.0.0.1:0 --amqp 127.0.0.1:0\n```\n```text\n…  the first home is on its page, … after the command\n```\n")
	home, demo := time.Since(called), time.Since(began)
	t.Logf("the first home of the demo is on its page after %s, %s after its command", sinceIn(began), sinceIn(called))
	follow(t, r, "<!-- after: demo -->\n```sh\ntrue\n```\n<!-- prints: demo -->\n```text\nThe books balance.\n```\n")
	if *minutesCold {
		return
	}
	testkit.That(t, event <= toFirstEvent, "the first event took %s", event)
	testkit.That(t, demo <= toDemo, "the demo took %s", demo)
	testkit.That(t, home <= toFirstHome, "the first home of the demo took %s", home)
}

// shell runs commands as their reader does, with the caches of who runs the test, or with none.
func shell(t *testing.T, dir, text string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", text)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if *minutesCold {
		cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(t.TempDir(), "cache"))
	}
	out, err := cmd.Output()
	return string(out), err
}

// follow does what a text says, as if it stood in a page.
func follow(t *testing.T, r *pages.Reader, text string) {
	t.Helper()
	page := filepath.Join(t.TempDir(), "page.md")
	testkit.Must(t, os.WriteFile(page, []byte(text), 0o600))
	r.Follow(t, page)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func sinceIn(began time.Time) time.Duration { return time.Since(began).Round(100 * time.Millisecond) }

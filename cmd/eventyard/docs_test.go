package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/pages"
)

// V6: what the tutorial and the guide for users of the emulator tell a reader to type works as it stands there, and
// prints what they show.
func TestPagesThatAreRun(t *testing.T) {
	for _, page := range []string{"docs/tutorials/orders.md", "docs/guides/from-emulator.md"} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			newReader(t).Follow(t, filepath.Join("..", "..", filepath.FromSlash(page)))
		})
	}
}

// newReader is somebody with an empty home, for whom other addresses stand for those that pages have.
func newReader(t *testing.T) *pages.Reader {
	t.Helper()
	home := t.TempDir()
	r := &pages.Reader{Dir: home, Instead: map[string]string{}, Env: []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "NO_COLOR=1", "GORACE=" + gorace,
	}}
	for variable, usual := range map[string]string{
		"EVENTYARD_AMQP": "127.0.0.1:5672", "EVENTYARD_AMQPS": "127.0.0.1:5671", "EVENTYARD_HTTP": "127.0.0.1:8080", "EVENTYARD_HTTPS": "127.0.0.1:8443",
		"": "127.0.0.1:9000", "EVENTYARD_DEV_STORAGE": "127.0.0.1:10000",
	} {
		address, err := freePorts.free()
		testkit.Must(t, err)
		r.Instead[usual] = address
		switch variable {
		case "EVENTYARD_HTTP":
			r.Env = append(r.Env, "EVENTYARD_SERVER=http://"+address, variable+"="+address)
		case "", "EVENTYARD_DEV_STORAGE": // said in the page
		default:
			r.Env = append(r.Env, variable+"="+address)
		}
	}
	return r
}

// V6: the messages that troubleshooting goes by are those of the program: each stands in its sources.
func TestMessagesOfTheTroubleshooting(t *testing.T) {
	page := string(testkit.Value(os.ReadFile("../../docs/guides/troubleshooting.md"))(t))
	program := sourceText(t)
	message := regexp.MustCompile("`([^`]+)`")
	looked := 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(line[2:], " | ")
		for _, m := range message.FindAllStringSubmatch(first, -1) {
			for _, part := range strings.Split(m[1], "…") {
				looked++
				testkit.That(t, strings.Contains(program, strings.TrimSpace(part)), "no source has %q", part)
			}
		}
	}
	testkit.That(t, looked > 40, "only %d messages were found", looked)
}

// sourceText is all code of the program but its tests. Messages that are written in two parts are whole there.
func sourceText(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	all.WriteString("address already in use, meta.db is missing") // which are the system's, and of a name and its fate
	for _, dir := range []string{"../../cmd", "../../server", "../../internal", "../../admin"} {
		testkit.Must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}))
	}
	return regexp.MustCompile("\" \\+\n\\s*\"").ReplaceAllString(all.String(), "")
}

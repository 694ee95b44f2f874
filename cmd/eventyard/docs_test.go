package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/pages"
	"github.com/eventyard/eventyard/test/parts"
)

// pagesRun are those that need nothing but the program; the quickstarts are run in test/interop.
var pagesRun = []string{"README.md", "docs/tutorials/orders.md", "docs/guides/from-emulator.md"}

// V7: what the README, the tutorial and the guide for users of the emulator tell a reader to type works as it
// stands there, and prints what they show.
func TestPagesThatAreRun(t *testing.T) {
	for _, page := range pagesRun {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			newReader(t).Follow(t, filepath.Join("..", "..", filepath.FromSlash(page)))
		})
	}
}

// guidesRun are guides whose commands are run, with what their readers have before they begin. What begins with a yard
// starts one by itself.
var guidesRun = map[string]string{
	"grid.md": "", "functions.md": "", "processor.md": "", "first.md": "", "http.md": "", "blob.md": "", "traces.md": "",
	"clients.md": "eventyard hub create orders --partitions 4",
	"kafka.md": "eventyard hub create orders --partitions 1\neventyard group create orders billing\neventyard send orders hello\n" +
		"eventyard checkpoint advance orders billing --to latest\neventyard group copy orders billing billing --to kafka",
	"operating.md":        "eventyard hub create orders\neventyard topic create sales\neventyard policy create till --hub orders --rights send",
	"access.md":           "eventyard hub create orders --partitions 4\neventyard group create orders billing",
	"from-svix-convoy.md": "eventyard topic create orders\neventyard subscription make-key > whsec.txt",
	"production.md":       "eventyard hub create orders\nmkdir safe backups\ncp eventyard-data/secret.key safe/",
	"backup.md":           "eventyard hub create orders --partitions 1\neventyard send orders hello\nmkdir safe backups\ncp eventyard-data/secret.key safe/",
}

// guidesNotRun are the others, with why.
var guidesNotRun = map[string]string{
	"functions-http.md": "TestHTTPFunctions in test/interop does what it says", "cluster.md": "TestTheGuideOfClustersIsRun and TestTheGuideOfServersOfTheirOwnIsRun do what it says",
	"install.md": "it installs as root, in containers and by Homebrew; what is installed so is tested in packaging",
	"demo.md":    "the demo goes on until Ctrl-C or for a minute; it has tests of its own",
	"stores.md":  "its command wants files of leases that another library has left", "configuration.md": "its command is run in from-emulator.md, with the file",
	"console.md": "it is about a browser", "security.md": "it has no commands", "troubleshooting.md": "its commands follow faults",
	"from-event-grid.md": "it has no commands",
}

// V7: no guide is left out.
func TestNoGuideIsLeftOut(t *testing.T) {
	for _, page := range testkit.Value(filepath.Glob("../../docs/guides/*.md"))(t) {
		name := filepath.Base(page)
		_, run := guidesRun[name]
		why := guidesNotRun[name]
		testkit.That(t, run || why != "" || slices.Contains(pagesRun, "docs/guides/"+name), "%s is run by no test, and nobody says why", name)
		testkit.That(t, !strings.HasSuffix(why, "no commands") || !strings.Contains(string(testkit.Value(os.ReadFile(page))(t)), "```sh"), "%s has commands", name)
	}
}

// V7: so does what guides tell, but for what says why it is not run.
func TestGuidesThatAreRun(t *testing.T) {
	for _, tool := range []string{"curl", "python3"} {
		if err := parts.Need(tool, tool); err != nil {
			parts.Missing(t, "the guides use it: %v", err)
		}
	}
	for guide, before := range guidesRun {
		t.Run(guide, func(t *testing.T) {
			t.Parallel()
			r := newReader(t)
			for written, here := range map[string]string{
				"{server}": "http://" + r.Instead["127.0.0.1:8080"], "{hub}": "orders", "{topic}": "orders", "{policy}": "RootManageSharedAccessKey",
				"ycurl": "curl --fail-with-body -u RootManageSharedAccessKey:SAS_KEY_VALUE", "/backups": filepath.Join(r.Dir, "backups"),
			} {
				r.Instead[written] = here
			}
			page := filepath.Join("..", "..", "docs", "guides", guide)
			if text := string(testkit.Value(os.ReadFile(page))(t)); !strings.Contains(text, "<!-- background: yard -->\n```sh\neventyard serve\n") {
				first := filepath.Join(t.TempDir(), "before.md")
				text := "<!-- background: yard -->\n```sh\neventyard serve\n```\n```text\nCtrl-C stops it.\n```\n```sh\n" + before + "\n```\n"
				testkit.Must(t, os.WriteFile(first, []byte(text), 0o600))
				r.Follow(t, first)
			}
			r.Follow(t, page)
		})
	}
}

// V7, C8: three nodes come up from the guide of clusters as it stands there, on three ports of one machine.
func TestTheGuideOfClustersIsRun(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	for _, usual := range []string{
		"127.0.0.1:6222", "127.0.0.1:6223", "127.0.0.1:6224", "127.0.0.1:5681", "127.0.0.1:5682", "127.0.0.1:5683",
		"127.0.0.1:8081", "127.0.0.1:8082", "127.0.0.1:8083",
	} {
		address, err := freePorts.free()
		testkit.Must(t, err)
		r.Instead[usual] = address
	}
	r.Follow(t, "../../docs/guides/cluster.md")
}

// V7: no tutorial is left out, and no command in them. Only .NET is not run, for which the tests have nothing.
func TestNoTutorialIsLeftOut(t *testing.T) {
	quickstarts := string(testkit.Value(os.ReadFile("../../test/interop/quickstarts_test.go"))(t))
	for _, page := range testkit.Value(filepath.Glob("../../docs/tutorials/*.md"))(t) {
		name := filepath.Base(page)
		run := slices.Contains(pagesRun, "docs/tutorials/"+name) || strings.Contains(quickstarts, `"`+name+`"`)
		testkit.That(t, run != (name == "dotnet.md"), "%s is run: %v", name, run)
		for _, b := range testkit.Value(pages.Read(page))(t) {
			testkit.That(t, run == (b.Kind != pages.NotRun), "%s:%d: the blocks that are not run are those of the page of .NET", name, b.Line)
		}
	}
}

// V7: who follows the README and then quickstarts does so on one yard: none creates what another has created. Pages that
// start a yard of their own, in another folder, are apart.
func TestPagesCreateEachTheirOwn(t *testing.T) {
	creates := regexp.MustCompile(`(?m)^eventyard ((?:hub|topic|blob) create \S+)`)
	ownYard := regexp.MustCompile(`(?m)^eventyard serve .*--data `)
	by := map[string]string{}
	for _, page := range append(testkit.Value(filepath.Glob("../../docs/tutorials/*.md"))(t), "../../README.md") {
		text := string(testkit.Value(os.ReadFile(page))(t))
		if ownYard.MatchString(text) {
			continue
		}
		for _, found := range creates.FindAllStringSubmatch(text, -1) {
			testkit.That(t, by[found[1]] == "", "%s and %s both say: eventyard %s", by[found[1]], filepath.Base(page), found[1])
			by[found[1]] = filepath.Base(page)
		}
	}
	testkit.That(t, len(by) > 8, "only %v was found", by)
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
		"EVENTYARD_KAFKA": "127.0.0.1:9092", "EVENTYARD_KAFKAS": "127.0.0.1:9093",
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

// V7: the unit of systemd that the guide shows is the one that packages bring.
func TestTheUnitOfTheGuideIsThatOfPackages(t *testing.T) {
	unit := string(testkit.Value(os.ReadFile("../../packaging/linux/eventyard.service"))(t))
	page := string(testkit.Value(os.ReadFile("../../docs/guides/production.md"))(t))
	_, shown, _ := strings.Cut(page, "# /etc/systemd/system/eventyard.service\n")
	shown, _, _ = strings.Cut(shown, "```")
	testkit.Equal(t, shown, unit, "docs/guides/production.md has another unit than packaging/linux/eventyard.service: copy it there")
}

// V7: the README is short enough to be read.
func TestTheReadmeIsShort(t *testing.T) {
	text := testkit.Value(os.ReadFile("../../README.md"))(t)
	lines := bytes.Count(text, []byte("\n"))
	testkit.That(t, lines < 100, "it has %d lines", lines)
}

// V7: what the pages outside docs lead to is there, with the heading; those of docs are followed in package console.
// Places elsewhere are not looked for.
func TestLinksOfThePagesAtTheTop(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(?:#([^)\s]*))?\)`)
	pages := append(testkit.Value(filepath.Glob("../../*.md"))(t), testkit.Value(filepath.Glob("../../test/*/README.md"))(t)...)
	testkit.That(t, len(pages) >= 6, "there are %q alone", pages)
	for _, page := range append(pages, "../../packaging/README.md", "../../internal/api/console/assets/VENDORED.md") {
		text := string(testkit.Value(os.ReadFile(page))(t))
		for _, to := range link.FindAllStringSubmatch(text, -1) {
			target, err := os.ReadFile(filepath.Join(filepath.Dir(page), to[1]))
			testkit.Check(t, err, "%s leads to %s", filepath.Base(page), to[1])
			testkit.That(t, to[2] == "" || hasHeading(string(target), to[2]), "%s leads to %s#%s, and there is no such heading", filepath.Base(page), to[1], to[2])
		}
	}
}

// hasHeading finds a heading by what GitHub makes of it: lower case, dashes for blanks, and nothing else but
// letters and digits.
func hasHeading(page, id string) bool {
	for line := range strings.Lines(page) {
		title, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !is || !strings.HasPrefix(line, "#") {
			continue
		}
		made := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))
		if made == id {
			return true
		}
	}
	return false
}

func TestHeadingsAreFound(t *testing.T) {
	const page = "# A title\n\n## What is `not` there yet?\ntext # no-heading\n"
	testkit.That(t, hasHeading(page, "a-title") && hasHeading(page, "what-is-not-there-yet"), "headings that are there")
	testkit.That(t, !hasHeading(page, "no-heading") && !hasHeading(page, "title"), "headings that are not")
}

// V7: the messages that troubleshooting goes by are those of the program: each stands in its sources.
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

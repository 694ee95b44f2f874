package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// wrongInputs has command lines that are wrong, each with what is said about it and the code that it ends with.
// go test ./cmd/eventyard -run Wrong -update writes what is said; whoever adds a line judges it.
const wrongInputs = "testdata/wrong/inputs.txt"

// Whatever is given that is wrong, the message says what that is and what to do next, in no words of Go's
// packages, and the code is not 0.
func TestWrongInputs(t *testing.T) {
	table, err := filepath.Abs(wrongInputs)
	testkit.Must(t, err)
	kept := string(testkit.Value(os.ReadFile(table))(t))
	w := newWrongWorld(t)
	var said strings.Builder
	inputs := 0
	for block := range strings.SplitSeq(strings.TrimSpace(kept), "\n\n") {
		line, _, _ := strings.Cut(block, "\n")
		command, is := strings.CutPrefix(line, "$ ")
		if !is {
			said.WriteString(block + "\n\n") // a heading
			continue
		}
		inputs++
		message, code := w.try(t, command)
		judge(t, command, message, code)
		fmt.Fprintf(&said, "$ %s\n%s[%d]\n\n", command, message, code)
	}
	testkit.That(t, inputs > 300, "only %d inputs were tried", inputs)
	now := strings.TrimSpace(said.String()) + "\n"
	if *update {
		testkit.Must(t, os.WriteFile(table, []byte(now), 0o644))
		kept = now
	}
	testkit.Diff(t, kept, now)
}

// ofGo are words of Go's packages, and of libraries, that say nothing to who types commands.
var ofGo = regexp.MustCompile(`\bjson: (cannot|un|invalid)|net/http|dial tcp|\btls: f|\bx509: |strconv|invalid character '|unmarshal|Go (value|struct)|\btime: (invalid|unknown|missing)|arg\(s\)|goroutine|panic|<nil>|%!|0xc0|pflag|context deadline|0m0s|/api/v1|\.go:\d`)

func judge(t *testing.T, command, message string, code int) {
	t.Helper()
	first, rest, _ := strings.Cut(message, "\n")
	testkit.That(t, code != 0, "%s ends with 0", command)
	testkit.That(t, strings.HasPrefix(first, "error: ") && len(first) > len("error: x"), "%s: what is wrong? %q", command, message)
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	testkit.That(t, strings.HasPrefix(message[strings.LastIndex(strings.TrimSpace(message), "\n")+1:], "  ") && lines[len(lines)-1] != "",
		"%s: and what is next? %q", command, message)
	testkit.That(t, !ofGo.MatchString(message), "%s: words of Go: %q", command, message)
}

// wrongWorld is a yard, and files that are not what they should be.
type wrongWorld struct {
	values *strings.Replacer // what stands for what in command lines
	hidden *strings.Replacer // and back, in what is said
}

func newWrongWorld(t *testing.T) *wrongWorld {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	t.Setenv("NO_COLOR", "1")
	for _, listener := range anyPort {
		name, value, _ := strings.Cut(listener, "=")
		t.Setenv(name, value)
	}
	for name, text := range map[string]string{
		"bad.json": "not json", "cut.json": `{"a":`, "list.json": "[]", "empty": "", "bin": "\xff\xfe\x00", "bad.yaml": "a: [1\n", "tabs.yaml": "hubs:\n\t- name: x\n",
		"typo.yaml": "hubs:\n  - name: orders\n    partitons: 4\n", "far.yaml": "zzzqq: 1\nretention: 5\n", "wrongtype.yaml": "http: [1,2]\ngrace: soon\nhubs: 5\n",
		"twice.yaml": "hubs:\n  - name: a\n  - name: A\n", "badhub.yaml": "hubs:\n  - name: \"a b\"\n    partitions: 0\n",
		"emulator.json": `{"UserConfig":{"NamespaceConfig":[{"Type":"EventHub","Name":"x","Entities":[{"Name":"eh1","PartitionCount":"x","ConsumerGroups":[]}]}],"LoggingConfig":{"Type":"File"}}}`,
		"secrets.yaml":  "secrets: {key: abc}\n", "same.yaml": "http: 127.0.0.1:8080\nhttps: 127.0.0.1:8080\n",
		"private.yaml":    "hubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://10.1.2.3/'}]\n",
		"badnotify.yaml":  "hubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1/', notify: [a@b.c]}]\n",
		"longnotify.yaml": "hubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1/', notify: [ops-secret@example.com]}]\n",
		"folder/file":     "x", "badconfig/eventyard/contexts.json": "{",
	} {
		testkit.Must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		testkit.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	yard, server := serving(t, "data", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--https", "127.0.0.1:0", "--kafka", "127.0.0.1:0")
	t.Cleanup(yard.stopYard)
	t.Setenv("EVENTYARD_SERVER", server)
	w := &wrongWorld{values: strings.NewReplacer(), hidden: strings.NewReplacer()}
	for _, setting := range []string{
		"hub create orders --partitions 2", "send orders a b c --partition 0", "group create orders billing", "topic create shop", "topic create clouds --schema cloudevents",
		"topic create dom --domain", "subscription create hook --topic shop --endpoint http://127.0.0.1:1/hook --skip-validation", "subscription create puller --topic shop --pull",
		"function create mail --hub orders --endpoint http://127.0.0.1:1/f", "policy create reader --rights listen", "backup saved",
	} {
		message, code := w.try(t, "eventyard "+setting)
		testkit.MustEqual(t, code, 0, setting+": "+message)
	}
	reader := strings.TrimSpace(do(t, "connection-string", "--policy", "reader"))
	pairs := []string{"$READER", reader, "$DIR", dir}
	for _, name := range []string{"amqp", "https", "http", "kafka"} { // of those that begin alike the longest first
		pairs = append(pairs, "$"+strings.ToUpper(name), yard.listeners[name])
	}
	w.values = strings.NewReplacer(pairs...)
	var back []string
	for i := 0; i < len(pairs); i += 2 {
		back = append(back, pairs[i+1], pairs[i])
	}
	w.hidden = strings.NewReplacer(back...)
	return w
}

// changing are what is another each time.
var changing = map[*regexp.Regexp]string{
	regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`): "TIME",
	regexp.MustCompile(`process \d+`):                             "process N",
	regexp.MustCompile(`([0-9A-F]{2}:){31}[0-9A-F]{2}`):           "FINGERPRINT",
	regexp.MustCompile(`\bkey [0-9a-f]{16}\b`):                    "key HASH",
	regexp.MustCompile(`looked at \d+ events`):                    "looked at N events",
}

// try carries out a command line, and gives what is said about it and the code.
func (w *wrongWorld) try(t *testing.T, line string) (message string, code int) {
	t.Helper()
	words := shellWords(w.values.Replace(line))
	for strings.Contains(words[0], "=") {
		name, value, _ := strings.Cut(words[0], "=")
		before, had := os.LookupEnv(name)
		testkit.Must(t, os.Setenv(name, value))
		defer func() {
			if had {
				_ = os.Setenv(name, before)
			} else {
				_ = os.Unsetenv(name)
			}
		}()
		words = words[1:]
	}
	testkit.MustEqual(t, words[0], "eventyard", line)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // one that is right after all may go on for ever
	defer cancel()
	var stdout, stderr bytes.Buffer
	err := run(ctx, words[1:], strings.NewReader(""), &stdout, &stderr)
	testkit.That(t, !errors.Is(ctx.Err(), context.DeadlineExceeded), "%s went on", line)
	code = report(&stderr, err)
	message = w.hidden.Replace(stderr.String())
	for pattern, name := range changing {
		message = pattern.ReplaceAllString(message, name)
	}
	return message, code
}

// shellWords divides a line as a shell would, as far as single quotes go; in them \n is a line break.
func shellWords(line string) (words []string) {
	var word strings.Builder
	begun, quoted := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			begun, quoted = true, !quoted
		case r == ' ' && !quoted:
			if begun {
				words = append(words, strings.ReplaceAll(word.String(), `\n`, "\n"))
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if begun {
		words = append(words, strings.ReplaceAll(word.String(), `\n`, "\n"))
	}
	return words
}

func TestShellWords(t *testing.T) {
	testkit.Slices(t, shellWords(`A=1 eventyard send  'a b' '' x'y'`), []string{"A=1", "eventyard", "send", "a b", "", "xy"})
}

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// verdicts are files of settings, and whether a yard that is new starts with them. anywhere stands for listeners at
// any free port of this machine.
const anywhere = "amqp: 127.0.0.1:0\namqps: off\nhttp: 127.0.0.1:0\nhttps: off\nkafka: off\nkafkas: off\nsync: os\n"

var verdicts = []struct {
	what, file string
	starts     bool
	says       string // by check, where it refuses
}{
	{"nothing but listeners", anywhere, true, ""},
	{"poison into a hub that is declared", anywhere + "hubs: [{name: orders}, {name: bad}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1:1/', poison: bad}]", true, ""},
	{"poison into a hub that is not there", anywhere + "hubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1:1/', poison: nowhere}]", false, "hub nowhere"},
	{"poison into a topic that is declared", anywhere + "hubs: [{name: orders}]\ntopics: [{name: failures}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1:1/', poison: 'topic:failures'}]", true, ""},
	{"poison into a topic that is not there", anywhere + "hubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1:1/', poison: 'topic:nowhere'}]", false, "topic nowhere"},
	{"poison into the yard's own topic", anywhere + "hubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1:1/', poison: 'topic:yard-events'}]", false, "only the yard publishes to yard-events"},
	{"no poison", anywhere + "hubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1:1/', poison: none}]", true, ""},
	{"a function for the poison of the one before", anywhere + "hubs: [{name: orders}]\nfunctions:\n  - {name: f, hub: orders, endpoint: 'http://127.0.0.1:1/'}\n  - {name: g, hub: f-poison, endpoint: 'http://127.0.0.1:1/', poison: F-poison-2}\nsubscriptions: []", false, "hub F-poison-2"},
	{"the same, with poison of its own", anywhere + "hubs: [{name: orders}]\nfunctions:\n  - {name: f, hub: orders, endpoint: 'http://127.0.0.1:1/'}\n  - {name: g, hub: f-poison, endpoint: 'http://127.0.0.1:1/'}", true, ""},
	{"a function at a private address", anywhere + "hubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://10.1.2.3/'}]", false, "--grid-allow 10.1.2.3/32"},
	{"the same, allowed", anywhere + "grid: {allow: 10.0.0.0/8}\nhubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://10.1.2.3/'}]", true, ""},
	{"a function on this machine, of a yard for others", strings.Replace(anywhere, "http: 127.0.0.1:0", "http: 0.0.0.0:0\nallowPlaintext: true", 1) + "hubs: [{name: orders}]\nfunctions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1:1/'}]", false, "127.0.0.1 is"},
	{"authorities of clients that are not there", strings.Replace(anywhere, "https: off", "https: 127.0.0.1:0\ntls: {clientCaFile: none.pem}", 1), false, "none.pem"},
	{"authorities of clients that are none", strings.Replace(anywhere, "https: off", "https: 127.0.0.1:0\ntls: {clientCaFile: eventyard.yaml}", 1), false, "holds no certificate"},
	{"data inside a file", anywhere + "data: eventyard.yaml/data", false, "is a file"},
	{"data that is a file", anywhere + "data: eventyard.yaml", false, "is a file"},
	{"data in a folder to be made", anywhere + "data: a/b/c", true, ""},
	{"a file of secrets that is not there", anywhere + "secrets: {keyFile: none.key}", false, "secrets.keyFile"},
	{"a file of secrets that holds none", anywhere + "secrets: {keyFile: eventyard.yaml}", false, "secrets.keyFile"},
	{"two listeners at one address", strings.Replace(anywhere, "http: 127.0.0.1:0\nhttps: off", "http: 127.0.0.1:48080\nhttps: 127.0.0.1:48080", 1), false, "is taken by the listener http"},
	{"one of them at all addresses", strings.Replace(anywhere, "http: 127.0.0.1:0\nhttps: off", "http: 127.0.0.1:48081\nhttps: :48081", 1), false, "is taken by the listener http"},
	{"a function of a hub that is not there", anywhere + "functions: [{name: f, hub: orders, endpoint: 'http://127.0.0.1:1/'}]", false, "hub orders"},
	{"a policy of a hub that is not there", anywhere + "policies: [{name: p, hub: orders, rights: [send]}]", false, "hub orders"},
}

// What config check says of a file is what comes of a start with it.
func TestCheckAndServeAgree(t *testing.T) {
	for _, tt := range verdicts {
		t.Run(tt.what, func(t *testing.T) {
			t.Chdir(t.TempDir())
			testkit.Must(t, os.WriteFile("eventyard.yaml", []byte(tt.file+"\n"), 0o600))
			var said bytes.Buffer
			checked := run(t.Context(), []string{"config", "check", "eventyard.yaml"}, strings.NewReader(""), &said, &said)
			report(&said, checked)
			testkit.That(t, (checked == nil) == tt.starts, "check says %s", &said)
			testkit.That(t, tt.starts || strings.Contains(said.String(), tt.says), "check says %s", &said)
			served := startsWith(t, filepath.Join(t.TempDir(), "data"), tt.file)
			testkit.That(t, (served == nil) == tt.starts, "serve ends with %v", served)
		})
	}
}

// startsWith gives the error of a start with the file in the working folder, nil where the yard was ready.
func startsWith(t *testing.T, data, file string) error {
	t.Helper()
	args := []string{"serve", "--config", "eventyard.yaml", "--log-level", "error"}
	if !strings.Contains(file, "\ndata:") {
		args = append(args, "--data", data)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ready := &untilReady{cancel: cancel}
	err := run(ctx, args, strings.NewReader(""), ready, &ready.text)
	testkit.That(t, err != nil || ready.came, "it stopped before it was ready: %s", &ready.text)
	return err
}

// untilReady stops a yard once it is ready.
type untilReady struct {
	text   bytes.Buffer
	came   bool
	cancel context.CancelFunc
}

func (u *untilReady) Write(p []byte) (int, error) {
	if strings.Contains(string(p), readyEnd) {
		u.came = true
		u.cancel()
	}
	return u.text.Write(p)
}

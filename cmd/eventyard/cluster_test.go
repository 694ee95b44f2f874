package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// answering is a yard that answers with lines, whatever it is asked for but its status.
func answering(t *testing.T, asked *string, lines ...string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"node":"a","engine":"nats","nodes":[],"servers":{"yard":"shop","replicas":3,"known":[],"addresses":[]}}`)
			return
		}
		body := testkit.Value(io.ReadAll(r.Body))(t)
		*asked = r.URL.Path + " " + string(bytes.TrimSpace(body))
		fmt.Fprintln(w, strings.Join(lines, "\n"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// C1, C7: what a scrub finds is printed with what to do, and the code says that there was something.
func TestClusterScrub(t *testing.T) {
	const (
		progress = `{"progress":{"done":0,"streams":2,"messages":5,"bytes":500}}`
		waiting  = `{"progress":{"done":0,"streams":2,"messages":5,"bytes":500,"waiting":["n3"]}}`
		warning  = `{"warning":"server n3 is offline: what it keeps is not compared"}`
		finding  = `{"finding":{"kind":"missing","stream":"Y_shop_l=h-orders-0","server":"n2","firstMessage":8,"lastMessage":9,"messages":2,"hub":"orders","partition":"0","firstEvent":7,"lastEvent":8,"detail":"the server does not have it","next":"stop server n2"}}`
		whole    = `{"done":{"node":"a","streams":2,"messages":10,"bytes":1000,"servers":["n1","n2"],"findings":%d%s}}`
	)
	for name, tt := range map[string]struct {
		args           []string
		lines          []string
		stdout, stderr string
		err            error
	}{
		"nothing": {lines: []string{progress, fmt.Sprintf(whole, 0, "")}, stdout: "scrubbed by node a: 2 streams, 10 messages (1000 B) of servers n1, n2: nothing is wrong\n"},
		"something": {
			lines: []string{progress, finding, fmt.Sprintf(whole, 1, "")}, err: errReported,
			stdout: "missing: hub orders, partition 0, events 7 to 8, server n2, stream Y_shop_l=h-orders-0, messages 8 to 9: the server does not have it\n  stop server n2\n" +
				"scrubbed by node a: 2 streams, 10 messages (1000 B) of servers n1, n2: 1 finding\n",
		},
		"not everything": {
			lines: []string{waiting, warning, fmt.Sprintf(whole, 0, `,"problems":["server n3 is offline: its copies of 2 streams were not compared"]`)}, err: errReported,
			stderr: "warning: server n3 is offline: what it keeps is not compared\nnot looked at: server n3 is offline: its copies of 2 streams were not compared\n",
			stdout: "scrubbed by node a: 2 streams, 10 messages (1000 B) of servers n1, n2: nothing is wrong\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			var stdout, stderr bytes.Buffer
			err := run(t.Context(), []string{"cluster", "scrub", "--rate", "10MB", "--server", answering(t, &asked, tt.lines...)}, nil, &stdout, &stderr)
			testkit.ErrorIs(t, err, tt.err, "the command")
			testkit.Equal(t, stdout.String(), tt.stdout, "printed")
			testkit.Equal(t, stderr.String(), tt.stderr, "printed beside")
			testkit.Equal(t, asked, `/api/v1/cluster/scrub {"rate":10000000}`, "asked")
			stdout.Reset()
			err = run(t.Context(), []string{"cluster", "scrub", "-o", "json", "--server", answering(t, &asked, tt.lines...)}, nil, &stdout, &stderr)
			testkit.ErrorIs(t, err, tt.err, "the command")
			testkit.That(t, strings.Contains(stdout.String(), `"found": [`) && strings.Contains(stdout.String(), `"streams": 2`), "printed %s", stdout.String())
		})
	}
	var asked string
	err := run(t.Context(), []string{"cluster", "scrub", "--server", answering(t, &asked, progress)}, nil, io.Discard, io.Discard)
	testkit.That(t, err != nil, "a scrub that broke off is one that is done")
}

func TestHowFarAScrubIs(t *testing.T) {
	for want, p := range map[string]admin.ScrubProgress{
		"asking the servers what they keep":                             {},
		"1 of 7 streams, 500 B read":                                    {Done: 1, Streams: 7, Bytes: 500},
		"1 of 7 streams, 500 B read, waiting for server nats-2, nats-3": {Done: 1, Streams: 7, Bytes: 500, Waiting: []string{"nats-2", "nats-3"}},
	} {
		testkit.Equal(t, scrubProgress(p), want, "progress")
	}
}

// C7: a change of replicas is asked for only when it was confirmed, and says what came of it.
func TestClusterReplicas(t *testing.T) {
	var asked string
	var stdout bytes.Buffer
	url := answering(t, &asked, `{"progress":{"done":1,"streams":7}}`, `{"done":{"replicas":1,"before":3,"streams":7,"changed":7}}`)
	err := run(t.Context(), []string{"cluster", "replicas", "1", "--server", url}, nil, &stdout, io.Discard)
	testkit.That(t, err != nil && asked == "", "without a confirmation it asked %q: %v", asked, err)
	testkit.Must(t, run(t.Context(), []string{"cluster", "replicas", "1", "--yes", "--server", url}, nil, &stdout, io.Discard))
	testkit.Equal(t, asked, `/api/v1/cluster/replicas {"replicas":1,"allowFewer":true}`, "asked")
	testkit.Equal(t, stdout.String(), "1 replica of each event, before 3: 7 streams of 7 changed\nstart nodes with --replicas 1 from now on\n", "printed")
	url = answering(t, &asked, `{"problem":{"type":"urn:eventyard:problem:too-few-servers","title":"Too few","status":409,"detail":"there are too few","next":"start more"}}`)
	err = run(t.Context(), []string{"cluster", "replicas", "5", "--yes", "--server", url}, nil, &stdout, io.Discard)
	testkit.That(t, err != nil && err.Error() == "there are too few" && nextFor(err) == "start more", "it failed by %v, next %q", err, nextFor(err))
}

// C1: what the last scrub has found is a part of the status.
func TestTheStatusHasTheLastScrub(t *testing.T) {
	for want, scrub := range map[string]string{
		"\nlast scrub: 2026-01-31T12:00:00.000Z, by node a, nothing is wrong\n":                                                                                                  `,"findings":0`,
		"\nlast scrub: 2026-01-31T12:00:00.000Z, by node a, 2 findings: hub orders, partition 0: it is gone\n  see all of them, and what to do, with: eventyard cluster scrub\n": `,"findings":2,"first":"hub orders, partition 0: it is gone"`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"node":"a","engine":"nats","nodes":[],"scrub":{"node":"a","ended":"2026-01-31T12:00:00Z"`+scrub+`}}`)
		}))
		var stdout bytes.Buffer
		testkit.Must(t, run(t.Context(), []string{"cluster", "status", "--server", server.URL}, nil, &stdout, io.Discard))
		testkit.That(t, strings.HasSuffix(stdout.String(), want), "it prints %s", stdout.String())
		server.Close()
	}
}

// C2: a stream that is lost is named with the hub that had it, or with its log, and with what to do.
func TestClusterStatusNamesLostStreams(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"node":"a","engine":"nats","nodes":[],"streams":{"count":1,"messages":2,"bytes":3,"leaderless":0,"offline":0,"lagging":0,`+
			`"lost":[{"name":"Y_shop_l=h-o-0","log":"o-1","hub":"orders"},{"name":"Y_shop_l=topic-3","log":"grid-x"}]}}`)
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	testkit.Must(t, run(t.Context(), []string{"cluster", "status", "--server", server.URL}, strings.NewReader(""), &stdout, &stderr))
	for _, want := range []string{"lost: stream Y_shop_l=h-o-0 of hub orders is not there: ", "lost: stream Y_shop_l=topic-3 of log grid-x is not there: ", "restore a backup"} {
		testkit.That(t, strings.Contains(stdout.String(), want), "it says %s", stdout.String())
	}
}

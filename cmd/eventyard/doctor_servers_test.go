package main

import (
	"context"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C8: the doctor finds what is wrong with servers, says what to write, and gives no password away.
func TestDoctorLooksAtServers(t *testing.T) {
	bare := natstest.StartAs(t, func(listen, _ string) string { return "server_name: n0\nlisten: \"" + listen + "\"" })
	good := natstest.Shared(t, 1).URL()
	for name, tt := range map[string]struct {
		engine, yard string
		replicas     int
		ended        bool
		want         status
		says         string
	}{
		"good":           {engine: good + "?replicas=1", want: fine, says: "n0"},
		"flags beside":   {engine: good, yard: "shop", replicas: 1, want: fine, says: "n0"},
		"a wrong yard":   {engine: good + "?replicas=1", yard: "a b", want: problem, says: `yard "a b"`},
		"no JetStream":   {engine: bare + "?replicas=1", want: problem, says: "jetstream {"},
		"wrong":          {engine: "nats://me:hunter2@a?replicas=2", want: problem, says: "1, 3 or 5"},
		"nobody answers": {engine: "nats://me:hunter2@127.0.0.1:1", ended: true, want: problem, says: "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.ended {
				cancel()
			}
			d := &doctor{cfg: config.Config{Engine: tt.engine, Yard: tt.yard, Replicas: tt.replicas}}
			d.examineServers(ctx)
			found := false
			for _, f := range d.findings {
				found = found || f.Status == tt.want && strings.Contains(f.Detail, tt.says)
				testkit.That(t, !strings.Contains(f.Detail, "hunter2"), "it says %s", f.Detail)
			}
			testkit.That(t, found, "found %+v", d.findings)
		})
	}
}

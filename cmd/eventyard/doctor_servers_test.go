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

// K1: doctor says where Kafka clients are led of a node, and when that cannot be told from another.
func TestWhereKafkaClientsAreLedToANode(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*config.Config)
		want   status // empty: nothing is said
		says   string
	}{
		"on loopback":           {change: func(c *config.Config) { c.Kafkas = "127.0.0.1:9093" }},
		"off":                   {change: func(c *config.Config) { c.Kafkas = config.Off }},
		"as it is advertised":   {func(c *config.Config) { c.KafkasAdvertise, c.Host = "node-1.example.com:9093", "yard.example.com" }, fine, "node-1.example.com:9093"},
		"by the name of all":    {func(c *config.Config) { c.Host = "yard.example.com" }, warning, "yard.example.com"},
		"by a balancer's":       {func(c *config.Config) { c.Host, c.KafkaBrokers = "yard.example.com", config.BrokersOne }, fine, "one broker"},
		"by its listener alone": {func(*config.Config) {}, fine, "machine's name"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Kafkas = ":9093"
			test.change(&cfg)
			d := &doctor{cfg: cfg}
			d.examineBrokers()
			if test.want == "" {
				testkit.Equal(t, len(d.findings), 0, "findings")
				return
			}
			testkit.MustEqual(t, len(d.findings), 1, "findings")
			testkit.Equal(t, d.findings[0].Status, test.want)
			testkit.That(t, strings.Contains(d.findings[0].Detail, test.says), "it says %q", d.findings[0].Detail)
			testkit.That(t, test.want != warning || strings.Contains(d.findings[0].Next, "--kafkas-advertise"), "what to do is %q", d.findings[0].Next)
		})
	}
}

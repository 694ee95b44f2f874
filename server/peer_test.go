package server

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// C8: what does not go with a bundle is refused before anything is touched; the bundle names the node.
func TestAPeersConfig(t *testing.T) {
	made := testkit.Value(NewBundles(filepath.Join(t.TempDir(), "shop"), "shop", "10.0.0.1,10.0.0.2,c.example.com"))(t)
	testkit.That(t, len(made) == 3 && made[2].Name == "c.example.com" && made[2].Address == "c.example.com:6222", "made %+v", made)
	b := testkit.Value(ReadBundle(made[0].File))(t)
	testkit.That(t, b.Node() == "node-1" && b.Yard() == "shop" && len(b.Peers()) == 3 && !b.Ends().IsZero(), "it is %+v", b.Peers())
	testkit.Must(t, b.CheckPeers("c.example.com,node-1=10.0.0.1,node-2=10.0.0.2:6222"))
	for name, tt := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"alone":                      {change: func(c *Config) {}},
		"its own name":               {change: func(c *Config) { c.Node = "node-1" }},
		"another name":               {func(c *Config) { c.Node = "node-2" }, "the bundle is that of node-1"},
		"another engine":             {func(c *Config) { c.Engine = "nats://a" }, "its engine inside"},
		"another secret key":         {func(c *Config) { c.Secrets.KeyFile = "x" }, "the secret key is in the bundle"},
		"no bundle":                  {func(c *Config) { c.Peer = Peer{Listen: ":1"} }, "needs its bundle"},
		"more replicas than peers":   {func(c *Config) { c.Peer.Replicas = 5 }, "5 replicas on 3 peers"},
		"an address without a port":  {func(c *Config) { c.Peer.Listen = "here" }, "use HOST:PORT"},
		"an address of all machines": {change: func(c *Config) { c.Peer.Listen = "0.0.0.0:6222" }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Peer: Peer{Bundle: b}, Log: testkit.Quiet()}
			tt.change(&cfg)
			s, err := New(cfg)
			if tt.says != "" {
				testkit.That(t, err != nil && strings.Contains(err.Error(), tt.says), "it says %v", err)
				return
			}
			testkit.Must(t, err)
			testkit.Equal(t, s.Node(), "node-1", "the node")
		})
	}
}

package bundle

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

var now = time.Date(2026, 11, 17, 6, 0, 0, 0, time.UTC)

// three are peers that can be used.
const three = "10.0.0.1,10.0.0.2:7000,c.example.com"

func made(t testing.TB) []Bundle {
	t.Helper()
	return testkit.Value(Make("shop", testkit.Value(ParsePeers(three))(t), now))(t)
}

// C8: peers are written in a word or two, and whatever is wrong with them is said with what to write.
func TestPeers(t *testing.T) {
	for name, tt := range map[string]struct{ text, want, says string }{
		"addresses":           {text: three, want: "node-1=10.0.0.1:6222 node-2=10.0.0.2:7000 c.example.com=c.example.com:6222"},
		"names":               {text: "a=h1, b=h2:1 ,c=[::1]:2", says: "on loopback"},
		"five":                {text: "a,b,c,d,e", want: "a=a:6222 b=b:6222 c=c:6222 d=d:6222 e=e:6222"},
		"one machine":         {text: "localhost:1,localhost:2,localhost:3", want: "node-1=localhost:1 node-2=localhost:2 node-3=localhost:3"},
		"IPv6":                {text: "[fe80::1]:1,fe80::2,[fe80::3]", want: "node-1=[fe80::1]:1 node-2=[fe80::2]:6222 node-3=[fe80::3]:6222"},
		"one":                 {text: "a", says: "1 peers: give three or five"},
		"two":                 {text: "a,b", says: "two are less than one"},
		"four":                {text: "a,b,c,d", says: "give three or five"},
		"none":                {text: "", says: "give three or five"},
		"the same name":       {text: "x=a,X=b,c", says: "two peers are called X"},
		"the same address":    {text: "x=127.0.0.1,y=127.0.0.1,z=127.0.0.1", says: "127.0.0.1:6222,127.0.0.1:6223"},
		"a wrong port":        {text: "a:0,b,c", says: "HOST:PORT"},
		"a wrong host":        {text: "a b,c,d", says: "HOST:PORT"},
		"a wrong name":        {text: "../x=a,b,c", says: "letters, digits"},
		"partly on loopback":  {text: "127.0.0.1,b,c", says: "on loopback"},
		"a URL":               {text: "nats://a,b,c", says: "HOST:PORT"},
		"a comma too many":    {text: "a,b,c,", says: "HOST:PORT"},
		"a name and no place": {text: "a=,b,c", says: "HOST:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			peers, err := ParsePeers(tt.text)
			if tt.says != "" {
				testkit.That(t, err != nil && strings.Contains(err.Error(), tt.says), "it says %v", err)
				return
			}
			testkit.Must(t, err)
			var got []string
			for _, p := range peers {
				got = append(got, p.String())
			}
			testkit.Equal(t, strings.Join(got, " "), tt.want, "peers")
		})
	}
}

// C8, R5: each peer's bundle is one file for its owner only, which holds all that it needs; nothing is
// written over.
func TestBundlesAreWrittenAndRead(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "shop")
	all := made(t)
	files := testkit.Value(Write(folder, all))(t)
	for i, name := range []string{"node-1", "node-2", "c.example.com"} {
		testkit.Equal(t, filepath.Base(files[i]), name+Suffix, "file")
		read := testkit.Value(Read(files[i]))(t)
		testkit.Deep(t, read, all[i])
		testkit.That(t, read.Node == name && read.Self() == read.Peers[i] && read.SecretsKey == all[0].SecretsKey, "it is %s", read.Node)
		testkit.Must(t, read.Check(now))
		if info := testkit.Value(os.Stat(files[i]))(t); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", files[i], info.Mode())
		}
	}
	_, err := Write(folder, all)
	testkit.That(t, err != nil && strings.Contains(err.Error(), "--out"), "written twice: %v", err)
	if runtime.GOOS != "windows" {
		testkit.Must(t, os.Chmod(files[0], 0o644))
		_, err := Read(files[0])
		testkit.That(t, err != nil && strings.Contains(err.Error(), "chmod 600"), "readable by all: %v", err)
	}
}

// C8: a bundle that cannot be used is refused with what to do, and its keys are in no error.
func TestBundlesThatCannotBeUsed(t *testing.T) {
	all := made(t)
	change := func(how func(*Bundle)) string {
		b := all[0]
		how(&b)
		return string(testkit.Value(json.Marshal(b))(t))
	}
	for name, tt := range map[string]struct{ text, says string }{
		"not a bundle":          {"-----BEGIN", "no bundle"},
		"half of one":           {change(func(*Bundle) {})[:500], "copy it again"},
		"of a newer program":    {change(func(b *Bundle) { b.Format = 2 }), "or a newer one"},
		"of nobody":             {change(func(b *Bundle) { b.Node = "x" }), "none of its peers"},
		"without a yard":        {change(func(b *Bundle) { b.Yard = "" }), "no yard"},
		"of two peers":          {change(func(b *Bundle) { b.Peers = b.Peers[:2] }), "two are less than one"},
		"another's certificate": {change(func(b *Bundle) { b.Certificate = all[1].Certificate }), "do not belong together"},
		"without an authority":  {change(func(b *Bundle) { b.Authority = "" }), "cannot be read"},
		"a broken secret key":   {change(func(b *Bundle) { b.SecretsKey = "x" }), "secret key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			testkit.That(t, err != nil && strings.Contains(err.Error(), tt.says), "it says %v", err)
			testkit.That(t, !strings.Contains(err.Error(), all[0].SecretsKey), "it says %v", err)
		})
	}
}

// C8: a clock that is wrong, and a certificate at its end, are told apart from other troubles.
func TestTheClock(t *testing.T) {
	b := made(t)[0]
	for name, tt := range map[string]struct {
		at   time.Time
		says string
	}{
		"behind by a little": {at: now.Add(-30 * time.Minute)},
		"behind by a day":    {at: now.Add(-24 * time.Hour), says: "set the clock"},
		"in nine years":      {at: now.Add(9 * 365 * 24 * time.Hour)},
		"in eleven years":    {at: now.Add(11 * 365 * 24 * time.Hour), says: "--renew"},
	} {
		t.Run(name, func(t *testing.T) {
			err := b.Check(tt.at)
			testkit.That(t, (err != nil) == (tt.says != "") && (err == nil || strings.Contains(err.Error(), tt.says)), "it says %v", err)
		})
	}
}

// C8, R5: peers of one cluster know each other, those of others are strangers, and so is who has no
// certificate.
func TestPeersKnowEachOther(t *testing.T) {
	here, there := made(t), made(t)
	renewed := testkit.Value(here[0].Renew(nil, now))(t)
	own := func(b Bundle) *tls.Config {
		c := testkit.Value(b.TLS())(t)
		c.Time = func() time.Time { return now }
		c.ServerName = "10.0.0.1"
		return c
	}
	bare := own(here[1])
	bare.Certificates = nil
	for name, tt := range map[string]struct {
		client *tls.Config
		want   bool
	}{
		"another peer":                 {own(here[1]), true},
		"a peer of another cluster":    {own(there[1]), false},
		"a peer with an older bundle":  {own(renewed[1]), false},
		"somebody with no certificate": {bare, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			defer a.Close()
			defer b.Close()
			server, client := tls.Server(a, own(here[0])), tls.Client(b, tt.client)
			asked := make(chan error, 1)
			go func() {
				err := client.HandshakeContext(t.Context())
				if err != nil {
					b.Close()
				}
				asked <- err
				_, _ = client.Read(make([]byte, 1)) // takes what the server says of the certificate
			}()
			err := server.HandshakeContext(t.Context())
			a.Close()
			met := err == nil && <-asked == nil
			testkit.Equal(t, met, tt.want, "let in (%v)", err)
		})
	}
}

// C8: bundles made anew are of the same cluster; the peers may be elsewhere, but are the same.
func TestRenew(t *testing.T) {
	old := made(t)[1]
	moved := testkit.Value(ParsePeers("node-2=10.1.0.2,c.example.com=10.1.0.3,node-1=10.1.0.1"))(t)
	all := testkit.Value(old.Renew(moved, now.Add(time.Hour)))(t)
	for _, b := range all {
		testkit.That(t, b.Cluster == old.Cluster && b.Yard == old.Yard && b.SecretsKey == old.SecretsKey && b.Authority != old.Authority, "it is %s", b.Node)
	}
	testkit.Equal(t, all[0].Self().Address, "10.1.0.2:6222", "the new address")
	_, err := old.Renew(testkit.Value(ParsePeers("a,b,c"))(t), now)
	testkit.That(t, err != nil && strings.Contains(err.Error(), "c.example.com, node-1, node-2"), "other peers: %v", err)
	testkit.That(t, old.Same(testkit.Value(ParsePeers("c.example.com,node-2=10.0.0.2:7000,node-1=10.0.0.1"))(t)), "the same in another order")
	testkit.That(t, !old.Same(moved), "elsewhere is not the same")
	_, err = Make("my yard", old.Peers, now)
	testkit.That(t, err != nil && strings.Contains(err.Error(), "letters"), "a wrong yard: %v", err)
}

// C1, C8: nodes without a server have bundles, with which they are clients of the peers and no servers.
func TestNodesWithoutAServer(t *testing.T) {
	peers := testkit.Value(ParsePeers("10.0.0.1,10.0.0.2,10.0.0.3:7000"))(t)
	all := testkit.Value(Make("shop", peers, now, "far-1", "far-2"))(t)
	testkit.Equal(t, len(all), 5, "bundles")
	read := testkit.Value(Parse(testkit.Value(json.Marshal(all[4]))(t)))(t)
	testkit.That(t, read.Node == "far-2" && read.IsNode() && read.Self() == Peer{} && !all[0].IsNode(), "it is %+v", read)
	testkit.Equal(t, all[0].Self().NodesAddress()+" "+all[2].Self().NodesAddress(), "10.0.0.1:4222 10.0.0.3:5000", "where nodes are let in")
	leaf := testkit.Value(read.TLS())(t).Certificates[0].Leaf
	testkit.That(t, leaf.Subject.CommonName == "far-2" && len(leaf.ExtKeyUsage) == 1 && leaf.ExtKeyUsage[0] == x509.ExtKeyUsageClientAuth, "its certificate is for %v", leaf.ExtKeyUsage)
	testkit.Equal(t, len(testkit.Value(read.Renew(nil, now))(t)), 5, "bundles made anew")
	testkit.Equal(t, len(testkit.Value(all[0].Renew(nil, now, "far-3"))(t)), 4, "bundles with other nodes")
	for says, nodes := range map[string][]string{"letters": {"two words"}, "two nodes are called": {"a", "A"}, "two nodes are called node-1": {"node-1"}} {
		_, err := Make("shop", peers, now, nodes...)
		testkit.That(t, err != nil && strings.Contains(err.Error(), says), "%v: it says %v", nodes, err)
	}
	_, err := Make("shop", testkit.Value(ParsePeers("10.0.0.1:2000,10.0.0.2,10.0.0.3"))(t), now, "far")
	testkit.That(t, err != nil && strings.Contains(err.Error(), "above 2000"), "no port is left: %v", err)
}

// FuzzParse: whatever somebody gives as a bundle is read or refused, and what is read can be used.
func FuzzParse(f *testing.F) {
	for _, b := range made(f) {
		f.Add(testkit.Value(json.Marshal(b))(f))
	}
	f.Add([]byte(`{"format":1,"peers":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Parse(text)
		if err != nil {
			return
		}
		testkit.Must(t, testkit.Err(b.TLS()))
		testkit.That(t, (b.Self().Name == b.Node || b.IsNode()) && !b.Ends().IsZero(), "it is for %s", b.Node)
	})
}

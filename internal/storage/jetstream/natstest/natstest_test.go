package natstest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// childVariable tells a copy of the test binary to run the server at that path, freeze it and wait to
// be killed.
const childVariable = "NATSTEST_CHILD"

func TestMain(m *testing.M) {
	path := os.Getenv(childVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	s, err := start(path, make([]*parts.Host, 1))
	if err == nil {
		err = s.all[0].program.Freeze()
	}
	if err != nil {
		println("error:", err.Error())
		os.Exit(1)
	}
	println(s.all[0].dir)
	select {}
}

func TestServersEndWithATestProcessThatWasKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+program(t))
	stderr, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	dir, err := bufio.NewReader(stderr).ReadString('\n')
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil || strings.HasPrefix(dir, "error:") {
		t.Fatal(dir, err)
	}
	dir = strings.TrimSpace(dir)
	testkit.Eventually(t, "the server's folder stays", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
}

// C1: what a server has acknowledged it has when it comes back, however it went.
func TestAServerGoesAndComesBack(t *testing.T) {
	tests := []struct {
		name       string
		goes, back func(*Servers, testing.TB, int)
	}{
		{"stopped", (*Servers).Stop, (*Servers).Restart},
		{"killed", (*Servers).Kill, (*Servers).Restart},
		{"frozen", (*Servers).Freeze, (*Servers).Thaw},
		{"frozen and killed", func(s *Servers, t testing.TB, i int) {
			s.Freeze(t, i)
			s.Kill(t, i)
		}, (*Servers).Restart},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Shared(t, 1)
			conn := s.Dial(t, 0)
			js := testkit.Value(jetstream.New(conn))(t)
			ack := testkit.Value(js.Publish(t.Context(), "natstest", nil))(t)
			tt.goes(s, t, 0)
			_, err := conn.Request("$JS.API.INFO", nil, 100*time.Millisecond)
			testkit.MustThat(t, err != nil, "a server that is %s answers", tt.name)
			tt.back(s, t, 0)
			testkit.Eventually(t, "the server does not come back", func() bool {
				stream, err := js.Stream(t.Context(), "natstest")
				return err == nil && stream.CachedInfo().State.LastSeq == ack.Sequence
			})
		})
	}
}

// A server that a test left frozen or stopped is back for the next one.
func TestSharedServersAreBroughtBack(t *testing.T) {
	t.Run("hurts", func(t *testing.T) {
		s := Shared(t, 3)
		s.Freeze(t, 0)
		s.Kill(t, 1)
	})
	s := Shared(t, 3)
	for i := range s.all {
		_, err := s.DialOnly(t, i).Request("$JS.API.INFO", nil, patience)
		testkit.Check(t, err, "server %d", i)
	}
	s.Leader(t, s.Dial(t, 0), "natstest")
}

// C4: two of three servers go on while the third is cut off, by namespaces and by proxies, and it catches up
// when it is joined.
func TestServersOnHostsOfANetwork(t *testing.T) {
	for name, network := range map[string]func(testing.TB, int) *parts.Network{"namespaces": parts.NewNetwork, "proxies": parts.NewProxies} {
		t.Run(name, func(t *testing.T) { cutOneOff(t, network(t, 3)) })
	}
}

func cutOneOff(t *testing.T, network *parts.Network) {
	s := StartOn(t, network.Host(0), network.Host(1), network.Host(2))
	js := testkit.Value(jetstream.New(s.Dial(t, 0)))(t)
	testkit.Value(js.Publish(t.Context(), "natstest", nil))(t)
	cut := s.DialOnly(t, 2)
	network.Host(2).Cut(t)
	var last uint64
	testkit.Eventually(t, "two servers do not go on", func() bool { // a leader that was cut off is replaced first
		ack, err := js.Publish(t.Context(), "natstest", nil)
		if err == nil {
			last = ack.Sequence
		}
		return err == nil
	})
	_, err := cut.Request("$JS.API.INFO", nil, 100*time.Millisecond)
	testkit.That(t, err != nil, "a server that was cut off answers")
	testkit.That(t, s.Leader(t, s.Dial(t, 0), "natstest") != 2, "a server that was cut off leads")
	network.Host(2).Join(t)
	testkit.Must(t, s.heal())
	stream := testkit.Value(js.Stream(t.Context(), "natstest"))(t)
	testkit.That(t, stream.CachedInfo().State.LastSeq >= last, "what was acknowledged is there")
}

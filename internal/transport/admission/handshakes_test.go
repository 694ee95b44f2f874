package admission

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/testkit"
)

// shaker has handshakes wait, and notes in which order they had their turns.
type shaker struct {
	ledger *Ledger
	order  []string
	ends   []func()
}

func (s *shaker) wait(ctx context.Context, from string) {
	go func() {
		end, err := s.ledger.Handshake(ctx, from+":1")
		if err != nil {
			return
		}
		s.order, s.ends = append(s.order, from), append(s.ends, end)
	}()
	synctest.Wait()
}

// run ends the handshakes one after the other until none is left.
func (s *shaker) run() {
	for len(s.ends) > 0 {
		end := s.ends[0]
		s.ends = s.ends[1:]
		end()
		synctest.Wait()
	}
}

// R2: few handshakes are computed at once; those that wait have their turns by address, so that a crowd from one
// address delays others by one handshake each, and the addresses of clients and this machine have most turns.
func TestHandshakesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Limits{Handshakes: 1})
		known := enter(t, l.Listener(10), "10.0.0.7:1")
		testkit.Must(t, known.Know(""))
		s := &shaker{ledger: l}
		s.wait(t.Context(), "192.0.2.1")
		for range 5 {
			s.wait(t.Context(), "192.0.2.1")
		}
		gone, leave := context.WithCancel(t.Context())
		s.wait(gone, "192.0.2.3")
		s.wait(t.Context(), "192.0.2.2")
		for range 4 {
			s.wait(t.Context(), "10.0.0.7")
		}
		s.wait(t.Context(), "127.0.0.1")
		leave()
		synctest.Wait()
		testkit.Equal(t, len(s.order), 1, "handshakes at once")
		s.run()
		want := []string{
			"192.0.2.1", // nobody else was there
			"10.0.0.7", "127.0.0.1", "192.0.2.1",
			"10.0.0.7", "10.0.0.7", "10.0.0.7", "192.0.2.2",
			"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1",
		}
		testkit.Slices(t, s.order, want)
		testkit.Equal(t, l.handshakes.free, 1, "turns that are free")
		testkit.Equal(t, len(l.handshakes.crowd.waiting)+len(l.handshakes.clients.waiting), 0, "addresses that wait")
	})
}

// R2: what is remembered of addresses is bounded, and those of late are among it.
func TestKnownAddresses(t *testing.T) {
	l := New(Limits{})
	listener := l.Listener(1 << 20)
	for i := range MaxKnown + 100 {
		testkit.Must(t, enter(t, listener, address(fmt.Sprintf("10.%d.%d.1:1", i/256, i%256))).Know(""))
	}
	testkit.Equal(t, len(l.handshakes.known), MaxKnown)
	last, _ := Address(fmt.Sprintf("10.%d.%d.1:1", (MaxKnown+99)/256, (MaxKnown+99)%256))
	_, ok := l.handshakes.known[last]
	testkit.That(t, ok, "the last is known")
}

package amqp

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Who owes us an answer, and who does not.
func TestWhoOwesAnAnswer(t *testing.T) {
	tests := []struct {
		name  string
		state tcpState
		want  bool
	}{
		{"nothing is under way", tcpState{sent: time.Hour, heard: time.Hour}, false},
		{"just sent", tcpState{unacked: true, heard: time.Second}, true},
		{"sent again and again", tcpState{unacked: true, sent: 5 * time.Second, heard: time.Minute}, true},
		{"asked whether there is room", tcpState{probes: 1, sent: time.Minute, heard: time.Second}, true},
		{"waits for room that was asked for", tcpState{sent: 5 * time.Minute, heard: time.Minute}, false},
		{"has no room for what was sent, and said so", tcpState{unacked: true, sent: time.Minute, heard: time.Minute}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testkit.Equal(t, tt.state.owes(), tt.want)
		})
	}
}

// The decision, step by step: at a second something is written, or looked at.
func TestVigil(t *testing.T) { // H7
	const limit = 15
	type step struct {
		at    int
		heard int // the second of the last sign of life; -1: this is a write
		asked int // unanswered
		gone  bool
		next  int // when to look next; -1: not before something is written
	}
	write := func(at, next int) step { return step{at: at, heard: -1, next: next} }
	tests := map[string][]step{
		"all is well": {
			write(100, 110), {at: 110, heard: 100, next: -1}, write(110, 120), {at: 120, heard: 110, next: -1},
		},
		"the second write does not count": {write(100, 110), write(105, 110)},
		"nothing is heard": {
			write(100, 110), {at: 110, heard: 90, asked: 2, next: 115}, {at: 115, heard: 90, asked: 2, gone: true, next: 115},
		},
		"heard at the last moment": {
			write(100, 110), {at: 110, heard: 90, asked: 2, next: 115}, {at: 115, heard: 114, next: -1},
		},
		"what is under way is young": { // all was well until 109, and the last write is of 110
			write(100, 110), {at: 110, heard: 109, asked: 2, next: 120}, {at: 120, heard: 109, asked: 2, next: 125},
			{at: 125, heard: 109, asked: 2, gone: true, next: 125},
		},
		"an answer in the same moment as the write": {write(100, 110), {at: 110, heard: 100, asked: 2, next: 120}},
		"silence before the write is no sign": {
			write(100, 110), {at: 110, heard: 10, asked: 2, next: 115}, {at: 115, heard: 110, asked: 2, next: 125},
		},
		"looked at early": {
			write(100, 110), {at: 105, heard: 90, asked: 2, next: 115}, {at: 110, heard: 90, asked: 2, next: 115},
			{at: 115, heard: 90, asked: 2, gone: true, next: 115},
		},
		"nobody wrote": {
			{at: 100, heard: 90, asked: 2, next: 110}, {at: 105, heard: 90, asked: 2, next: 115}, {at: 110, heard: 109, next: -1},
		},
		"one packet may get lost": {
			write(100, 110), {at: 110, heard: 90, asked: 1, next: 115}, {at: 115, heard: 90, asked: 1, next: 120},
			{at: 120, heard: 90, asked: 1, next: 125}, {at: 125, heard: 90, asked: 2, gone: true, next: 125},
		},
		"room is waited for": {
			write(100, 110), {at: 110, heard: 101, next: -1}, {at: 115, heard: 101, next: -1}, {at: 400, heard: 101, next: -1},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var v vigil
			for i, s := range steps {
				now := time.Unix(int64(s.at), 0)
				gone := false
				if s.heard < 0 {
					v.wrote(now, limit*time.Second)
				} else {
					state := tcpState{probes: s.asked, heard: time.Duration(s.at-s.heard) * time.Second}
					gone = v.look(now, state, limit*time.Second)
				}
				want := time.Hour
				if s.next >= 0 {
					want = time.Duration(s.next-s.at) * time.Second
				}
				if wait := v.wait(now); gone != s.gone || wait != want {
					t.Fatalf("step %d: gone %v, next look in %v, want %v, %v", i, gone, wait, s.gone, want)
				}
			}
		})
	}
}

// machine is what the kernel would know of a peer's. It answers until it vanishes.
type machine struct {
	looks    atomic.Int64
	vanished atomic.Pointer[time.Time]
}

func (m *machine) state(net.Conn) (tcpState, bool) {
	m.looks.Add(1)
	if v := m.vanished.Load(); v != nil {
		return tcpState{unacked: true, sent: time.Since(*v) / 2, heard: time.Since(*v)}, true
	}
	// Its client reads nothing, and it was asked about that for the last time long ago.
	return tcpState{sent: time.Minute, heard: time.Minute}, true
}

func (m *machine) vanish() {
	now := time.Now()
	m.vanished.Store(&now)
}

// serveMachine serves a peer whose machine the test has in its hands.
func serveMachine(t *testing.T, out *source, idle time.Duration) (*fixture, *machine) {
	f := serve(t, accept(nil, out), func(c *Config) { c.IdleTimeout = idle })
	m := &machine{}
	f.server.tcpState = m.state
	return f, m
}

// greedy opens a connection, and wants as much as it can get.
func greedy() []byte {
	b := append([]byte(nil), wire.ProtocolAMQP[:]...)
	b = appendFrame(b, 0, &wire.Open{ContainerID: "greedy"}, nil)
	b = appendFrame(b, 0, newBegin(), nil)
	b = appendFrame(b, 0, receiver("r", 0), nil)
	return appendFrame(b, 0, credit(0, 0, 1<<30), nil)
}

// A machine that vanishes is noticed within 30 s, whenever that is and whatever is under
// way then: nothing but heartbeats, a little now and then, or more than it had room for.
func TestVanishedMachineIsNoticed(t *testing.T) { // H7
	for what, every := range map[string]time.Duration{
		"idle": time.Hour, "now and then": 9 * time.Second, "often": 100 * time.Millisecond, "stuck": 0,
	} {
		for after := range 12 {
			t.Run(fmt.Sprintf("%s, %d s", what, after), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					f, m := serveMachine(t, every100(every), time.Hour)
					p := quietPeer(t, f.pipe())
					if every > 0 {
						p.reader.Go(p.read) // what a kernel buffers
					}
					p.write(greedy())
					time.Sleep(time.Minute + time.Duration(after)*time.Second)
					m.vanish()
					start := time.Now()
					f.serves.Wait()
					if took := time.Since(start); took >= 30*time.Second {
						t.Errorf("noticed after %v", took)
					}
					testkit.Equal(t, f.refused(reasonVanished), 1, "not counted")
				})
			})
		}
	}
}

// every100 sends 100 bytes at a time, or as fast as it can.
func every100(pause time.Duration) *source {
	if pause == 0 {
		return endless(nil, 100)
	}
	return &source{run: func(ctx context.Context, l *Link) error {
		for {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil
			}
			if _, err := l.Send(ctx, 1, func(dst []byte, _ int) []byte { return append(dst, make([]byte, 100)...) }); err != nil {
				return err
			}
		}
	}}
}

// A client that reads nothing stays, while its machine answers and it sends heartbeats.
func TestClientThatReadsNothingStays(t *testing.T) { // H7
	inBubble(t, func(t *testing.T) {
		f, m := serveMachine(t, endless(nil, 1000), time.Minute)
		p := quietPeer(t, f.pipe())
		p.write(greedy())
		for range 18 { // nine minutes
			time.Sleep(30 * time.Second)
			p.write(wire.AppendEmptyFrame(nil))
		}
		testkit.Check(t, testkit.Err(io.CopyN(io.Discard, p.nc, 1<<20)), "cut off")
		if looks := m.looks.Load(); looks < 9*60/5-1 { // the last falls together with the end
			t.Errorf("it was looked at only %d times", looks)
		}
	})
}

// A client that neither reads nor says anything is a frozen one.
func TestFrozenClientWhileAWriteIsStuck(t *testing.T) { // H7
	inBubble(t, func(t *testing.T) {
		f, _ := serveMachine(t, endless(nil, 1000), time.Minute)
		p := quietPeer(t, f.pipe())
		p.write(greedy())
		start := time.Now()
		f.serves.Wait()
		if took := time.Since(start); took < time.Minute || took > time.Minute+vanishedAfter/3+closeWait {
			t.Errorf("closed after %v", took)
		}
		testkit.Equal(t, f.refused(reasonIdle), 1, "not counted")
	})
}

// Idle connections are looked at when they are sent a heartbeat, and not besides.
func TestLookingCostsLittle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, m := serveMachine(t, &source{}, time.Hour)
		p := f.raw()
		time.Sleep(time.Second) // out of step with the server's own watch
		p.attachReceiver()
		synctest.Wait()
		m.looks.Store(0)
		time.Sleep(10*time.Minute + time.Second)
		testkit.Equal(t, m.looks.Load(), 60, "looked … times in ten minutes")
	})
}

package natsstreams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// load is many writers on two nodes, and what they were told.
type load struct {
	servers *natstest.Servers
	nodes   []*Storage
	stop    context.CancelFunc
	writers sync.WaitGroup

	mu       sync.Mutex
	acked    map[streams.Seq]string
	refused  map[string]error
	doubtful map[string]error
}

const loadWriters = 8 // of each node

// startLoad begins to write to one stream through servers 1 and 2, or through those given.
func startLoad(t *testing.T, through ...int) *load {
	servers := natstest.Shared(t, 3)
	name := yard(t, servers)
	if through == nil {
		through = []int{1, 2}
	}
	l := &load{servers: servers, acked: map[streams.Seq]string{}, refused: map[string]error{}, doubtful: map[string]error{}}
	for _, first := range through {
		l.nodes = append(l.nodes, open(t, servers, first, name))
	}
	testkit.Must(t, l.nodes[0].Make(t.Context(), "s", streams.Config{}))
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	for i, s := range l.nodes {
		for w := range loadWriters {
			l.writers.Go(func() { l.write(ctx, s, fmt.Sprint("node ", i, " writer ", w)) })
		}
	}
	return l
}

// write publishes one message after the other.
func (l *load) write(ctx context.Context, s *Storage, who string) {
	for i := 0; ctx.Err() == nil; i++ {
		text := fmt.Sprint(who, " message ", i)
		answered := make(chan struct{})
		var seq streams.Seq
		var err error
		s.Publish("s", fmt.Sprint(i%4), []byte(text), func(at streams.Seq, e error) {
			seq, err = at, e
			close(answered)
		})
		<-answered
		l.mu.Lock()
		switch {
		case err == nil:
			l.acked[seq] = text
		case errors.Is(err, streams.ErrUncertain):
			l.doubtful[text] = err
		default:
			l.refused[text] = err
		}
		l.mu.Unlock()
		if err != nil { // servers that refuse at once are not worth a storm
			_ = sleep.About(ctx, 20*time.Millisecond)
		}
	}
}

// more waits until messages that were published after it was called are acknowledged.
func (l *load) more(t *testing.T) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acked)
	}
	target := count() + 20*loadWriters*len(l.nodes)
	testkit.Eventually(t, "nothing is acknowledged any more", func() bool { return count() >= target })
}

func (l *load) leader(t *testing.T) int {
	t.Helper()
	return l.servers.Leader(t, l.servers.Dial(t, 0), l.nodes[0].names.stream("s"))
}

// finish ends the writers and compares, as each node reads it: what was acknowledged is there, at its
// sequence; what was refused is not; what is in doubt is there once at most.
func (l *load) finish(t *testing.T) {
	t.Helper()
	l.stop()
	l.writers.Wait()
	for i, s := range l.nodes {
		var state streams.State
		testkit.Eventually(t, "the leader does not answer", func() bool {
			var err error
			state, err = s.State(t.Context(), "s")
			return err == nil
		})
		stored := readThrough(t, s, state.Last)
		seen := map[string]bool{}
		landed := 0
		for seq := streams.Seq(1); seq <= state.Last; seq++ {
			text, there := stored[seq]
			acked, is := l.acked[seq]
			doubt, doubtful := l.doubtful[text]
			switch {
			case !there:
				t.Errorf("node %d: nothing at sequence %d", i, seq)
			case seen[text]:
				t.Errorf("node %d: %q is stored twice", i, text)
			case is && text != acked:
				t.Errorf("node %d: %q at sequence %d, acknowledged was %q", i, text, seq, acked)
			case l.refused[text] != nil:
				t.Errorf("node %d: %q was refused with %q, and is stored", i, text, l.refused[text])
			case !is && !doubtful:
				t.Errorf("node %d: %q at sequence %d is of nobody (%v)", i, text, seq, doubt)
			case !is:
				landed++
			}
			seen[text] = true
		}
		for seq := range l.acked {
			testkit.That(t, seq <= state.Last, "node %d: sequence %d is lost", i, seq)
		}
		t.Logf("node %d: %d acknowledged, %d refused, %d in doubt of which %d are stored", i, len(l.acked), len(l.refused), len(l.doubtful), landed)
	}
}

// readThrough reads a stream up to a sequence.
func readThrough(t *testing.T, s *Storage, last streams.Seq) map[streams.Seq]string {
	t.Helper()
	stored := map[streams.Seq]string{}
	from := streams.Seq(1)
	testkit.Eventually(t, "the stream cannot be read", func() bool {
		for {
			part, err := s.Read(t.Context(), "s", streams.Query{From: from})
			if err != nil {
				return false
			}
			for _, m := range part.Messages {
				stored[m.Seq] = string(m.Data)
				from = m.Seq + 1
			}
			if from > last || len(part.Messages) == 0 {
				return from > last
			}
		}
	})
	return stored
}

// C1, C2: leaders that step down lose nothing that was acknowledged.
func TestTheLeaderStepsDownUnderLoad(t *testing.T) {
	l := startLoad(t)
	conn := l.servers.Dial(t, 1)
	for range 5 {
		l.more(t)
		if err := natstest.StepDown(conn, l.nodes[0].names.stream("s")); err != nil {
			t.Log(err)
		}
	}
	l.more(t)
	l.finish(t)
}

// C1: kill -9 of the leader, twice, the second time while the first has just come back. One node is
// connected to it: its connection breaks with messages under way.
func TestTheLeaderIsKilledUnderLoad(t *testing.T) {
	l := startLoad(t, 0, 1, 2)
	for range 2 {
		l.more(t)
		leader := l.leader(t)
		l.servers.Kill(t, leader)
		testkit.Eventually(t, "other replicas cannot be read", func() bool {
			part, err := l.nodes[(leader+1)%3].Read(t.Context(), "s", streams.Query{From: 1, MaxMessages: 1})
			return err == nil && len(part.Messages) == 1
		})
		l.more(t)
		l.servers.Restart(t, leader)
	}
	l.more(t)
	l.finish(t)
}

// C1: a frozen leader is replaced. What was sent to it is in doubt, and when it goes on it takes
// itself for the leader for a moment.
func TestTheLeaderIsFrozenUnderLoad(t *testing.T) {
	l := startLoad(t, 0, 1, 2)
	l.more(t)
	leader := l.leader(t)
	l.servers.Freeze(t, leader)
	l.more(t)
	l.servers.Thaw(t, leader)
	l.more(t)
	l.finish(t)
	testkit.That(t, len(l.doubtful) > 0, "a frozen leader leaves no doubt")
}

// C1, C5: all servers are killed at once, and all goes on by itself when they are back.
func TestAllServersAreKilledUnderLoad(t *testing.T) {
	l := startLoad(t)
	l.more(t)
	for i := range 3 {
		l.servers.Kill(t, i)
	}
	_, err := l.nodes[0].State(t.Context(), "s")
	testkit.ErrorIs(t, err, streams.ErrUnavailable)
	_, err = l.nodes[0].Read(t.Context(), "s", streams.Query{})
	testkit.ErrorIs(t, err, streams.ErrUnavailable)
	for i := range 3 {
		l.servers.Restart(t, i)
	}
	l.more(t)
	l.finish(t)
}

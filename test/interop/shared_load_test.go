//go:build linux

package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// checkEvent looks at one event: it has the number that comes next, and is what was sent under that
// number.
func checkEvent(t *testing.T, partition string, got, want int64, body []byte) {
	if text := sharedText(partition, want); got != want || string(body) != text {
		t.Errorf("partition %s: event %d is %q, not %q", partition, got, body, text)
	}
}

func sharedText(partition string, sequence int64) string {
	return fmt.Sprintf("%d of %s", sequence, partition)
}

// load sends to all partitions until it is stopped.
type load struct {
	*sharer
	sent map[string]int64 // sequence number of the last event, by partition
}

func startLoad(t *testing.T, connection string) *load {
	t.Helper()
	client, err := hub.Dial(t.Context(), connection, hub.Config{Log: quietLog(t)})
	testkit.Must(t, err)
	l := &load{sent: map[string]int64{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.send(t, ctx, client.Hub(sharedHub))
	}()
	l.sharer = newSharer(t, func() {
		cancel()
		<-done
		_ = client.Close()
	})
	return l
}

func (l *load) send(t *testing.T, ctx context.Context, h *hub.Hub) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for next := int64(0); ctx.Err() == nil; next += 3 {
		for p := range sharedPartitions {
			id := fmt.Sprint(p)
			events := []event.Event{
				event.Text(sharedText(id, next)), event.Text(sharedText(id, next+1)), event.Text(sharedText(id, next+2)),
			}
			if err := h.SendTo(context.WithoutCancel(ctx), id, events...); err != nil {
				t.Errorf("send: %v", err)
				return
			}
			l.sent[id] = next + 2
		}
		<-tick.C
	}
}

// stop ends it and tells the last events.
func (l *load) stop() map[string]int64 {
	l.sharer.stop()
	return l.sent
}

// sharer is one processor of the group.
type sharer struct{ stop func() } // and wait for its end; safe twice

func newSharer(t *testing.T, stop func()) *sharer {
	s := &sharer{sync.OnceFunc(stop)}
	t.Cleanup(s.stop)
	return s
}

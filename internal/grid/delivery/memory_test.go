package delivery

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestWhatFitsIntoMemory(t *testing.T) {
	const event = 600 // bytes, with its item 1000
	bounds := &terms{queueEvents: 4, queueBytes: 3500}
	for _, tt := range []struct {
		name           string
		total          int // of all lanes
		queued         int
		fits, low, old bool
	}{
		{"nothing is there", 1 << 20, 0, true, true, true},
		{"some is", 1 << 20, 1, true, true, true},
		{"half", 1 << 20, 2, true, false, true},
		{"too many bytes", 1 << 20, 3, false, false, true},
		{"too many events", 1 << 20, 4, false, false, true},
		{"others have left as much as it would hold", 4000, 2, false, false, false},
		{"and half as much as it holds", 2500, 1, false, false, false},
		{"one event always fits", 1, 0, true, true, true},
		{"unless nothing is left", 0, 0, false, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBudget(tt.total, newClock())
			m := memory{budget: b}
			for range tt.queued {
				b.charge(event + itemBytes)
				m.push(bounds, itemFor(make([]byte, event)), time.Now())
			}
			if fits := m.fits(bounds, event); fits != tt.fits {
				t.Errorf("fits: %v, want %v", fits, tt.fits)
			}
			if low := m.low(bounds); low != tt.low {
				t.Errorf("low: %v, want %v", low, tt.low)
			}
			if old := m.fitsExpired(bounds, event); old != tt.old {
				t.Errorf("fits as something old: %v, want %v", old, tt.old)
			}
			for _, it := range m.clear() {
				m.letGo(it)
			}
			if used := b.used.Load(); used != 0 || m.bytes != 0 {
				t.Errorf("%d bytes are in use at the end, %d held", used, m.bytes)
			}
		})
	}
}

func itemFor(event []byte) *item {
	s := &body{bytes: event}
	s.refs.Store(1)
	return &item{Delivery: pending.Delivery{Event: event}, body: s}
}

// What receivers hold comes back when its lock has ended, and not before.
func TestLocksLapse(t *testing.T) {
	now := time.Now()
	var p pullers
	first, second := itemFor(nil), itemFor(nil)
	one, two := newToken("sub"), newToken("sub")
	p.hold(hold{one, first, now.Add(time.Minute)})
	p.hold(hold{two, second, now.Add(2 * time.Minute)})
	testkit.Equal(t, len(p.lapse(now.Add(time.Minute-1))), 0, "lapsed too soon")
	if lapsed := p.lapse(now.Add(time.Minute)); len(lapsed) != 1 || lapsed[0] != first || !p.nextLapse.Equal(now.Add(2*time.Minute)) {
		t.Errorf("lapsed %v, the next will at %v", lapsed, p.nextLapse)
	}
	settled, holds := p.unlock("sub", []string{one, "sub.rubbish", newToken("other"), two}, false, now)
	for i, want := range []error{ErrLockLost, ErrToken, ErrToken, nil} {
		testkit.Equal(t, settled[i].Err, want, "token %d", i)
	}
	if len(holds) != 1 || holds[0].item != second || len(p.held) != 0 {
		t.Errorf("unlocked %v, %d are held", holds, len(p.held))
	}
	p.hold(holds[0])
	if _, holds = p.unlock("sub", []string{two}, true, now.Add(time.Hour)); len(holds) != 0 || len(p.lapse(now.Add(time.Hour-1))) != 0 {
		t.Error("a renewed lock ended before its time")
	}
	testkit.Equal(t, len(p.lapse(now.Add(time.Hour))), 1, "lapsed at the end of a renewed lock")
}

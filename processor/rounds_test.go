package processor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// counting counts the reads of all instances that share it.
type counting struct {
	processor.Store
	reads, writes atomic.Int64
	// nervous, where it is set, is how often it says that something has changed, changed or not.
	nervous time.Duration
}

func (s *counting) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	l, err := s.Store.Leases(ctx, g)
	s.reads.Add(1)
	return l, err
}

func (s *counting) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	f, err := s.Store.Entries(ctx, g, prefix)
	s.reads.Add(1)
	return f, err
}

func (s *counting) Claim(ctx context.Context, g processor.Group, l []processor.Lease) ([]processor.Lease, error) {
	s.writes.Add(1)
	return s.Store.Claim(ctx, g, l)
}

func (s *counting) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	s.writes.Add(1)
	return s.Store.Put(ctx, g, f)
}

func (s *counting) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	if s.nervous == 0 {
		return s.Store.(processor.Watcher).Watch(ctx, g, ready, changed)
	}
	tick := time.NewTicker(s.nervous)
	defer tick.Stop()
	ready()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// load runs so many instances until they are at rest, then for a minute, and gives what the store
// was asked in that.
func load(t *testing.T, partitions, instances int, nervous time.Duration) (reads, writes int64) {
	bubble(t, partitions, func(w *world) {
		s := &counting{Store: w.store, nervous: nervous}
		var all []*running
		for i := range instances {
			cfg := w.config(fmt.Sprintf("i%02d", i))
			cfg.Store = s
			all = append(all, w.start(cfg, w.note))
		}
		after(2 * time.Minute)
		s.reads.Store(0)
		s.writes.Store(0)
		after(time.Minute)
		reads, writes = s.reads.Load(), s.writes.Load()
		for id, n := range w.counts() {
			if most := (partitions + instances - 1) / instances; n > most {
				t.Errorf("%s has %d partitions", id, n)
			}
		}
		for _, r := range all {
			r.cancel()
		}
		for _, r := range all {
			<-r.done
		}
	})
	return reads, writes
}

// P8: a group at rest asks its store no more than it has to: in each Renew each instance reads once
// and writes its leases and its presence, however many others do the same.
func TestAGroupAtRestAsksItsStoreLittle(t *testing.T) {
	for _, instances := range []int{2, 20} {
		reads, writes := load(t, 40, instances, 0)
		t.Logf("%d instances: %d reads and %d writes a minute", instances, reads, writes)
		if most := int64(instances) * 8; reads > 3*most || writes > 2*most {
			t.Errorf("%d instances: %d reads and %d writes a minute, want at most %d and %d", instances, reads, writes, 3*most, 2*most)
		}
	}
}

// A store that tells of changes all the time, as while a large group becomes even, is not asked all
// the time.
func TestAStoreThatReportsManyChangesIsNotReadForEach(t *testing.T) {
	reads, _ := load(t, 16, 4, 10*time.Millisecond)
	if rounds := reads / 3 / 4; rounds > 5*60+20 {
		t.Errorf("each instance has made %d rounds in a minute", rounds)
	}
}

// subscribed is a store that reports changes, of which there are none.
type subscribed struct {
	processor.Store
	renewed []time.Time
}

func (*subscribed) Subscribe(context.Context, processor.Group, func()) error { return nil }

func (s *subscribed) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	s.renewed = append(s.renewed, time.Now())
	return s.Store.Claim(ctx, g, leases)
}

// P1: idle instances that are alone renew at full seconds, so that many of them in one process
// wake it together, and in time.
func TestIdleInstancesRenewTogether(t *testing.T) {
	bubble(t, 1, func(w *world) {
		cfg, store := w.config("a"), &subscribed{Store: w.store}
		cfg.Store = store
		time.Sleep(time.Second / 3)
		w.start(cfg, w.note)
		after(time.Hour)
		for i, at := range store.renewed[3:] {
			if gap := at.Sub(store.renewed[i+2]); at.Nanosecond() != 0 || gap > 10*time.Second {
				t.Fatalf("renewed at %v, %v after the last time", at, gap)
			}
		}
		testkit.That(t, len(store.renewed) > 360, "renewed %d times", len(store.renewed))
	})
}

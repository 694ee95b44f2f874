package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/memory"
	"github.com/eventyard/eventyard/processor/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) processor.Store { return memory.New() })
}

func TestTimesAreThoseOfTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := memory.New(), processor.Group{Hub: "h", Group: "g"}
		changed := make(chan struct{}, 1)
		ready := make(chan struct{})
		go func() { _ = s.Watch(t.Context(), g, func() { close(ready) }, changed) }()
		<-ready
		won, err := s.Claim(t.Context(), g, []processor.Lease{{Partition: "0", Owner: "a", Epoch: 1}})
		testkit.Must(t, err)
		<-changed
		time.Sleep(time.Hour)
		again, err := s.Claim(t.Context(), g, won)
		if err != nil || again[0].Renewed.Sub(again[0].Acquired) != time.Hour {
			t.Errorf("renewed %+v, %v", again, err)
		}
	})
}

func TestAnAcquisitionHasToRaiseTheEpoch(t *testing.T) {
	s, g := memory.New(), processor.Group{Hub: "h", Group: "g"}
	won, err := s.Claim(t.Context(), g, []processor.Lease{{Partition: "0", Owner: "a", Epoch: 1}})
	testkit.Must(t, err)
	won[0].Owner = "b"
	if won, err := s.Claim(t.Context(), g, won); err != nil || len(won) != 0 {
		t.Errorf("b has won %v, %v at a's epoch", won, err)
	}
}

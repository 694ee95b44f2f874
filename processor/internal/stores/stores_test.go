package stores

import (
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// P1: what was taken by another is left out; what is not known is an error.
func TestClaimGivesWhatWasWritten(t *testing.T) {
	down := errors.New("down")
	outcome := map[string]error{"1": processor.ErrConflict, "2": down}
	leases := []processor.Lease{{Partition: "0"}, {Partition: "1"}, {Partition: "2"}, {Partition: "3"}}
	won, err := Claim(leases, 2, func(l processor.Lease) (processor.Lease, error) {
		l.Version = "new"
		return l, outcome[l.Partition]
	})
	testkit.ErrorIs(t, err, down)
	testkit.Equal(t, err.Error(), "claim partition 2: down")
	testkit.Slices(t, won, []processor.Lease{{Partition: "0", Version: "new"}, {Partition: "3", Version: "new"}})
}

// P1: no two owners ever have the same epoch.
func TestWhichLeaseMayFollow(t *testing.T) {
	recorded := processor.Lease{Owner: "a", Epoch: 3}
	for name, c := range map[string]struct {
		next processor.Lease
		want bool
	}{
		"a renewal":                  {processor.Lease{Owner: "a", Epoch: 3}, true},
		"a release":                  {processor.Lease{Epoch: 3}, true},
		"another, with a raised one": {processor.Lease{Owner: "b", Epoch: 4}, true},
		"another, with the same":     {processor.Lease{Owner: "b", Epoch: 3}, false},
		"a lower one":                {processor.Lease{Owner: "a", Epoch: 2}, false},
	} {
		t.Run(name, func(t *testing.T) { testkit.Equal(t, MayFollow(recorded, c.next), c.want) })
	}
}

func TestAWatcherThatHasYetToHearIsNotWaitedFor(t *testing.T) {
	changed := make(chan struct{}, 1)
	Notify(changed)
	Notify(changed)
	testkit.Equal(t, len(changed), 1)
}

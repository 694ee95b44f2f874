package azblob_test

import (
	"net/http"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// vain lets a thief draw number 2, and just before it writes the ownership blob the owner
// renews. What happens to the number then is cut off, or not.
func vain(t *testing.T, cut bool) (thief, s processor.Store, mine processor.Lease) {
	t.Helper()
	w, thief, s, _ := wired(t)
	mine = claim(t, s, processor.Lease{Partition: "0", Owner: "owner", Epoch: 1})
	w.first("PUT ownership", func(send func() (*http.Response, error)) (*http.Response, error) {
		mine = claim(t, s, mine)
		if cut {
			w.always("PUT epoch", func() *http.Response { return busy(http.StatusForbidden) })
		}
		return send()
	})
	seen := lease(t, thief, "0")
	seen.Owner, seen.Epoch = "thief", 2
	lost(t, thief, seen)
	return thief, s, mine
}

func TestANumberDrawnInVainIsPutBack(t *testing.T) { // P1
	thief, s, mine := vain(t, false)
	now := lease(t, s, "0")
	if now.Owner != "owner" || now.Epoch != 1 {
		t.Errorf("the lease is %+v", now)
	}
	begin(t, thief, mine)
	now.Owner, now.Epoch = "other", 2
	claim(t, s, now)
}

func TestANumberDrawnInVainAndLeftHarmsNobody(t *testing.T) { // P1
	thief, s, mine := vain(t, true)
	c := begin(t, s, mine)
	c.Sequence = 5
	c = save(t, s, mine, c)
	mine = claim(t, s, mine)
	c.Sequence = 6
	save(t, thief, mine, c) // a store that did not write the lease knows it by the epoch blob
	mine = claim(t, thief, mine)

	now := lease(t, s, "0")
	if now.Owner != "owner" || now.Epoch != 2 {
		t.Errorf("the lease is %+v, want the owner's, with the epoch that is to be exceeded", now)
	}
	now.Owner = "other"
	lost(t, s, now)
	now.Epoch++
	claim(t, s, now)
	testkit.ErrorIs(t, testkit.Err(thief.Begin(t.Context(), group, mine)), processor.ErrFenced, "the former owner begins")
}

func TestANumberDrawnByOneThatDiedIsExceeded(t *testing.T) { // P3
	w, dead, s, _ := wired(t)
	w.first("PUT ownership", func(func() (*http.Response, error)) (*http.Response, error) { return nil, errCut })
	l := processor.Lease{Partition: "0", Owner: "dead", Epoch: 1}
	testkit.MustErrorIs(t, testkit.Err(dead.Claim(t.Context(), group, []processor.Lease{l})), errCut, "claim gave")
	seen := lease(t, s, "0")
	if seen.Owner != "" || seen.Version != "" || seen.Epoch != 1 {
		t.Fatalf("the lease is %+v", seen)
	}
	lost(t, s, processor.Lease{Partition: "0", Owner: "b", Epoch: 1})
	seen.Owner, seen.Epoch = "b", 2
	claim(t, s, seen)
}

// Whoever drew the number before may use it: the answer was lost, not the number.
func TestANumberWhoseAnswerWasLostIsStillItsOwners(t *testing.T) { // P3
	w, s, _, _ := wired(t)
	w.first("PUT epoch", answerLost)
	l := processor.Lease{Partition: "0", Owner: "a", Epoch: 1}
	testkit.MustErrorIs(t, testkit.Err(s.Claim(t.Context(), group, []processor.Lease{l})), errCut, "claim gave")
	lost(t, s, processor.Lease{Partition: "0", Owner: "b", Epoch: 1})
	begin(t, s, claim(t, s, l))
}

func TestARenewalIsOneRequest(t *testing.T) { // P10
	w, s, _, _ := wired(t)
	l := claim(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	w.first("", nil) // counts from here
	claim(t, s, l)
	for kind, want := range map[string]int{"PUT ownership": 1, "HEAD ownership": 0, "HEAD epoch": 0, "PUT epoch": 0} {
		t.Run(kind, func(t *testing.T) {
			testkit.Equal(t, w.count(kind), want, "%s was sent", kind)
		})
	}
}

func TestAnOwnersNameThatIsNoHeaderIsRefused(t *testing.T) { // P1
	_, s, _, _ := wired(t)
	for _, owner := range []string{"größer", "a\nb", " a", "a "} {
		won, err := s.Claim(t.Context(), group, []processor.Lease{{Partition: "0", Owner: owner, Epoch: 1}})
		if err == nil {
			t.Errorf("owner %q was written: %+v", owner, won)
		}
	}
}

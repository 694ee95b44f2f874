package azblob_test

import (
	"net/http"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// takeOver lets another instance have the partition, just before the former owner's next
// request of a kind is sent.
func takeOver(t *testing.T, w *wire, kind string, s processor.Store, former processor.Lease) (lease *processor.Lease, begun *processor.Checkpoint) {
	t.Helper()
	lease, begun = &processor.Lease{}, &processor.Checkpoint{}
	w.first(kind, func(send func() (*http.Response, error)) (*http.Response, error) {
		former.Owner, former.Epoch = "new", former.Epoch+1
		*lease = claim(t, s, former)
		*begun = begin(t, s, *lease)
		return send()
	})
	return lease, begun
}

// owner gives a store on a wire, its lease and its checkpoint, and a store beside it.
func owner(t *testing.T, saved bool) (*wire, processor.Store, processor.Lease, processor.Checkpoint, processor.Store) {
	t.Helper()
	w, s, beside, _ := wired(t)
	l := claim(t, s, processor.Lease{Partition: "0", Owner: "former", Epoch: 1})
	c := begin(t, s, l)
	if saved {
		c.Sequence = 10
		c = save(t, s, l, c)
	}
	return w, s, l, c, beside
}

func TestWhoeverTakesOverWhileAnotherBeginsFencesIt(t *testing.T) { // P1
	for _, kind := range []string{"HEAD checkpoint", "HEAD ownership", "PUT checkpoint"} {
		w, s, l, _, beside := owner(t, true)
		_, begun := takeOver(t, w, kind, beside, l)
		testkit.ErrorIs(t, testkit.Err(s.Begin(t.Context(), group, l)), processor.ErrFenced, "taken over before %s, the former owner begins at", kind)
		if now := checkpoint(t, beside, "0"); now.Version != begun.Version {
			t.Errorf("taken over before %s, the checkpoint is %+v after %+v", kind, now, *begun)
		}
	}
}

func TestWhoeverTakesOverWhileAnotherSavesFencesIt(t *testing.T) { // P7
	for _, kind := range []string{"HEAD ownership", "PUT checkpoint"} {
		w, s, l, c, beside := owner(t, true)
		_, begun := takeOver(t, w, kind, beside, l)
		c.Sequence = 11
		testkit.ErrorIs(t, testkit.Err(s.Save(t.Context(), group, l, c)), processor.ErrFenced, "taken over before %s, the former owner saves", kind)
		if now := checkpoint(t, beside, "0"); now.Version != begun.Version || now.Sequence != 10 {
			t.Errorf("taken over before %s, the checkpoint is %+v after %+v", kind, now, *begun)
		}
	}
}

// There is nothing to write again where no checkpoint is, so a first save can slip
// in. The new owner finds out before it moves anything.
func TestAFormerOwnersFirstSaveIsAConflictForTheNewOwner(t *testing.T) { // P7
	w, s, l, c, beside := owner(t, false)
	mine, begun := takeOver(t, w, "PUT checkpoint", beside, l)
	c.Sequence = 3
	save(t, s, l, c)
	begun.Sequence = 1
	testkit.ErrorIs(t, testkit.Err(beside.Save(t.Context(), group, *mine, *begun)), processor.ErrConflict, "the new owner saves")
	if c := begin(t, beside, *mine); c.Sequence != 3 {
		t.Errorf("the new owner begins again at %+v", c)
	}
	c.Sequence = 4
	testkit.ErrorIs(t, testkit.Err(s.Save(t.Context(), group, l, c)), processor.ErrFenced, "the former owner goes on saving")
}

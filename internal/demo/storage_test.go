package demo

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/servertest"
)

// newStorage is a container of a yard.
func newStorage(t *testing.T) (*storage, *admin.Client) {
	t.Helper()
	yard := servertest.Start(t, servertest.Listeners)
	client := testkit.Value(admin.New(admin.Config{Server: yard.Addresses()["http"]}))(t)
	t.Cleanup(client.Close)
	blobs := testkit.Value(client.ConnectionString(t.Context(), admin.ConnectionStringQuery{Blob: true}))(t)
	s := testkit.Value(openStorage(settings{Blobs: blobs, Container: container, Every: time.Minute}))(t)
	testkit.Must(t, s.create(t.Context()))
	testkit.Must(t, s.create(t.Context()), "a container that is there")
	yard.Hub(t, sensorsHub, 1)
	return s, client
}

// load gives a state of partition 7 under an epoch.
func load(t *testing.T, s *storage, epoch int64) *state {
	t.Helper()
	st := testkit.Value(s.load(t.Context(), "7"))(t)
	st.epoch = epoch
	return st
}

// S, P3: who has lost a partition can no longer replace its state; one whose answer was lost can.
func TestAStateHasOneOwner(t *testing.T) {
	s, _ := newStorage(t)
	old := load(t, s, 1)
	testkit.Equal(t, old.sequence, -1, "where nobody has been")
	old.sequence, old.open[noon.Unix()] = 41, newTally()
	old.open[noon.Unix()].add("h-000001", motion, 3)
	testkit.Must(t, s.save(t.Context(), old))

	unaware := *old // its answer was lost: it has the version before
	testkit.Must(t, s.save(t.Context(), old))
	unaware.sequence = 42
	testkit.Must(t, s.save(t.Context(), &unaware), "an owner that does not know its own version")

	next := load(t, s, 2)
	testkit.Equal(t, next.sequence, 42, "where the next owner begins")
	testkit.Equal(t, next.open[noon.Unix()].readings, 1, "readings of the open minute")
	testkit.Must(t, s.save(t.Context(), next))
	unaware.sequence = 50
	testkit.ErrorIs(t, s.save(t.Context(), &unaware), errFenced, "an owner that has lost the partition")
	testkit.Equal(t, load(t, s, 3).sequence, 42, "the state after that")
}

// S: two that finish the same minute lose nothing of each other, and count nothing twice.
func TestAMinuteIsFinishedTwice(t *testing.T) {
	s, client := newStorage(t)
	minute := time.Now().Truncate(time.Minute).Unix()
	one, two := newTally(), newTally()
	one.add("h-000001", motion, 3)
	one.add("h-000002", motion, 4)
	two.add("h-000002", motion, 4)
	two.add("h-000003", glass, 1)
	testkit.Must(t, s.finish(t.Context(), "7", minute, one))
	testkit.Must(t, s.finish(t.Context(), "7", minute, two))
	testkit.Must(t, s.finish(t.Context(), "7", minute, one))
	st := load(t, s, 1)
	st.sequence, st.open[minute+60] = 4, newTally()
	st.open[minute+60].add("h-000001", motion, 0)
	testkit.Must(t, s.save(t.Context(), st))

	a := &auditor{storage: s, client: client, began: time.Now(), settled: map[string]map[page]int64{}}
	seen := testkit.Value(a.look(t.Context()))(t)
	read := testkit.Value(a.read(t.Context()))(t)
	for name, h := range map[string]holdings{"looked at": seen, "read": read} {
		testkit.Equal(t, h.blobs[page{"7", minute}], 3, "readings in the blob, %s", name)
		testkit.Equal(t, h.open[page{"7", minute + 60}], 1, "readings in the state, %s", name)
		testkit.Equal(t, h.saved["7"], 4, "newest event of the state, %s", name)
	}
}

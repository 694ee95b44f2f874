package groups

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// hangingStage is a stage whose instance has its lease hang on its presence.
func hangingStage(t *testing.T) *stage {
	s := newStage(t)
	s.beat(`{"nonce":"n","life":"L"}`)
	s.lease.Presence = "L"
	s.lease = s.claim(s.a, s.lease)
	return s
}

// beat puts the presence of a.
func (s *stage) beat(value string) {
	s.t.Helper()
	s.presence.Value = []byte(value)
	s.presence = testkit.Value(s.PutBy(s.t.Context(), s.as("a's secret", presenceTime), s.g, s.presence))(s.t)
}

// end is what another instance puts to end a's life.
func (s *stage) end() processor.Entry {
	e := s.presence
	e.Value = []byte(`{"nonce":"n","life":"L","ended":true}`)
	return e
}

// R1, P1: a lease that hangs on a presence is its owner's for a lease time after the presence was
// renewed, however long ago it was written itself.
func TestALeaseThatHangsOnAPresenceIsItsOwnersWhileThatIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hangingStage(t)
		b := s.as("another secret", leaseTime)
		taken := s.lease
		taken.Owner, taken.Epoch, taken.Presence = "b", 2, "M"
		for range 10 {
			time.Sleep(leaseTime - time.Second)
			s.refused(b, taken, "taken while the presence is renewed")
			testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), b, s.g, s.end())), ErrForbidden)
			testkit.ErrorIs(t, s.RemoveBy(t.Context(), b, s.g, s.presence), ErrForbidden)
			s.beat(`{"nonce":"n","life":"L"}`)
		}
		leases := testkit.Value(s.Leases(t.Context(), s.g))(t)
		testkit.Equal(t, time.Since(leases[0].Renewed) < time.Second, true, "shown as renewed at %v", leases[0].Renewed)
		time.Sleep(leaseTime + time.Second)
		testkit.Must(t, testkit.Err(s.PutBy(t.Context(), b, s.g, s.end())), "end the life of one that is silent")
		testkit.Equal(t, s.claim(b, taken).Owner, "b", "owner")
	})
}

// What was claimed after the last renewal of the presence has its own time, and does not keep the
// presence from being ended.
func TestALifeCanBeEndedBeforeItsNewestLeaseHasRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hangingStage(t)
		b := s.as("another secret", leaseTime)
		time.Sleep(leaseTime / 2)
		newest := s.claim(s.a, processor.Lease{Partition: "1", Owner: "a", Epoch: 1, Presence: "L"})
		time.Sleep(leaseTime/2 + time.Second)
		testkit.ErrorIs(t, testkit.Err(s.PutBy(t.Context(), b, s.g, processor.Entry{Key: "presence/a", Value: []byte(`{"nonce":"b"}`), Version: s.presence.Version})), ErrForbidden)
		testkit.Must(t, testkit.Err(s.PutBy(t.Context(), b, s.g, s.end())))
		newest.Owner, newest.Epoch = "b", 2
		s.refused(b, newest, "taken before its time")
		time.Sleep(leaseTime / 2)
		testkit.Equal(t, s.claim(b, newest).Owner, "b", "owner")
	})
}

// One whose life was ended begins another at once: the entry is nobody's.
func TestWhoWasEndedBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := hangingStage(t)
		time.Sleep(leaseTime + time.Second)
		ended := testkit.Value(s.PutBy(t.Context(), s.as("another secret", leaseTime), s.g, s.end()))(t)
		table := testkit.Value(s.Table(t.Context(), "orders", "g"))(t)
		testkit.Equal(t, len(table.Instances) == 1 && !table.Instances[0].Present, true, "instances %+v", table.Instances)
		s.presence = ended
		s.beat(`{"nonce":"n","life":"L2"}`)
		s.lease.Presence, s.lease.Epoch = "L2", 2
		testkit.Equal(t, s.claim(s.a, s.lease).Presence, "L2", "hangs on")
	})
}

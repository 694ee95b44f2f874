package delivery

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/grid/watermark"
)

// A change of the index lets those join who are not behind. A step of the pump that is under way
// then does no more: what comes next is the feed's.
func TestAPumpNoticesThatItsTrackHasJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, run := still(t)
		tr := l.tracks[0]
		tr.detach(tr.next(), run.Time)
		tr.position, tr.mark = 0, watermark.At(0)
		f := tr.feed
		f.next = 0
		f.position.Store(0)
		c := (&filling{lane: l}).catching(tr)
		for n := range int64(3) {
			if !c.concerns(n, &run, int(n)) || !c.takeOne(&run, n) {
				t.Fatalf("%d was not taken", n)
			}
		}
		if !f.join(tr) {
			t.Fatal("the track did not join")
		}
		f.offer(&run, 0, 6)
		c.take(&run)
		f.offer(&run, 6, 10)
		if got, want := l.queued(), []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(got, want) {
			t.Errorf("queued %v, want %v", got, want)
		}
	})
}

// A source whose subscriptions have no place yet is not read from its beginning for nobody.
func TestASourceWithoutLanesIsReadFromItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, l, _ := still(t)
		src := l.source
		y.service.reconciler.endLane(src, l)
		src.settle()
		if at := src.feeds[0].position.Load(); at != 10 {
			t.Errorf("the feed begins at %d, want 10", at)
		}
	})
}

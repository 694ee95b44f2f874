package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
)

// restoringKey is the key of an entry, the mark, that is there from before anything is restored to a yard
// on servers until all of it is there. No node starts meanwhile.
const restoringKey = "storage/restoring"

// claim is that of a process which alone fills a yard on servers. Of several that want to at once one gets
// it: who stores the mark, or replaces the one that was found.
//
// A hold says that the process lives. It is there before the mark and until after it, so that whoever finds
// a mark without one finds what a killed process has left. The store of the mark is never made anew, so that
// the revision of one that was replaced is not given again: who was frozen, and taken for dead, cannot
// take another's mark for its own.
type claim struct {
	store meta.Store
	yard  string
	text  fillMark      // what the mark says
	mark  meta.Revision // its revision
	hold  *holds.Hold
}

// markOf gives the mark among the entries of a yard; without a key: there is none. filled: there are
// others than of those who fill it.
func markOf(stored []meta.Entry) (mark meta.Entry, filled bool) {
	for _, e := range stored {
		if e.Key == restoringKey {
			mark = e
		}
		filled = filled || isFilled(e)
	}
	return mark, filled
}

// isFilled: the entry is not of those who fill a yard.
func isFilled(e meta.Entry) bool {
	return e.Key != restoringKey && !strings.HasPrefix(e.Key, holds.Prefix)
}

// claimYard claims a yard in which a mark was found, or none: one without a key. It waits for who may fill
// it at the moment to be seen dead or alive, for half a minute at most. What was left by one that did not
// get as far as to fill it is taken over only where nobody uses the yard. Errors: ErrRestoring,
// ErrYardOccupied, or the store's; after the first two nothing was changed.
func claimYard(ctx context.Context, store meta.Store, yard string, found meta.Entry, program string) (*claim, error) {
	c := &claim{store: store, yard: yard}
	if found.Key != "" {
		if err := c.alone(ctx); err != nil {
			return nil, err
		}
	}
	var err error
	if c.hold, err = holds.Begin(ctx, store, holds.Filling); err != nil {
		return nil, err
	}
	if err := c.begin(ctx, found, program); err != nil {
		c.leave()
		return nil, err
	}
	return c, nil
}

// begin stores the mark. Nobody may have begun to use the yard before it is there: who has comes first.
func (c *claim) begin(ctx context.Context, found meta.Entry, program string) error {
	left := parseFillMark(found)
	m := fillMark{Program: program, Began: time.Now().UTC().Format(time.RFC3339), Fills: left.Fills, Adapting: left.Adapting}
	if err := c.putMark(ctx, m, found.Revision); err != nil || m.Fills {
		return err
	}
	if err := c.unused(ctx); err != nil {
		return err
	}
	m.Fills = true
	return c.putMark(ctx, m, c.mark)
}

// fillMark is the text of the mark.
type fillMark struct {
	Program string `json:"program"`
	Began   string `json:"began"`
	// Fills: nobody used the yard when the mark was there already, so that whatever is there since then was
	// left by who fills it. Until then nothing is anybody's to remove.
	Fills bool `json:"fills"`
	// Adapting: what was filled in is being changed or removed, so that it can only be begun anew.
	Adapting bool `json:"adapting,omitempty"`
}

// fills tells whether an entry is the mark of a process that fills the yard, and does not only ask for it.
func fills(found meta.Entry) bool { return parseFillMark(found).Fills }

// parseFillMark reads a mark, which may be none.
func parseFillMark(found meta.Entry) (m fillMark) {
	if found.Key == "" || json.Unmarshal(found.Value, &m) != nil {
		return fillMark{}
	}
	return m
}

// adapting notes whether what was filled in is changed from now on.
func (c *claim) adapting(ctx context.Context, is bool) error {
	m := c.text
	m.Adapting = is
	return c.putMark(ctx, m, c.mark)
}

// putMark stores the mark in place of the one of a revision.
func (c *claim) putMark(ctx context.Context, m fillMark, expected meta.Revision) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if c.mark, err = c.store.CompareAndSet(ctx, restoringKey, expected, text); err != nil {
		return c.taken(err, "another process fills yard %s, or has filled it meanwhile")
	}
	c.text = m
	return nil
}

// unused wants nobody to have begun to use the yard before the mark was there, which goes otherwise.
func (c *claim) unused(ctx context.Context) error {
	if err := c.store.Fresh(ctx, ""); err != nil {
		return err
	}
	stored, err := c.store.List(ctx, "")
	if err != nil {
		return err
	}
	if _, filled := markOf(stored); !filled {
		return nil
	}
	return errors.Join(fmt.Errorf("%w: yard %s is used, or was filled meanwhile", ErrYardOccupied, c.yard), c.end(ctx))
}

// taken gives what an error of the store means for a mark.
func (c *claim) taken(err error, sentence string) error {
	if errors.Is(err, meta.ErrConflict) || errors.Is(err, meta.ErrNotFound) {
		return fmt.Errorf("%w: "+sentence, ErrRestoring, c.yard)
	}
	return err
}

// aloneTime is how long it is waited for another process to end, or to be seen dead.
const aloneTime = 30 * time.Second

// alone makes sure that nobody else fills the yard at the moment. One that was killed is known as such by
// its silence, one that lives as soon as it renews its hold.
func (c *claim) alone(ctx context.Context) error {
	looker := holds.NewLooker(c.store, holds.Filling)
	for late := time.Now().Add(aloneTime); ; {
		held, err := looker.Held(ctx)
		if err != nil || !held {
			return err
		}
		if looker.Renewed() || time.Now().After(late) {
			return fmt.Errorf("%w: another process fills yard %s at the moment", ErrRestoring, c.yard)
		}
		if err := sleep.For(ctx, time.Second, nil); err != nil {
			return err
		}
	}
}

// end removes the mark: nodes start from now on. ErrRestoring: another process has taken this one for
// dead, and what is there is the other's.
func (c *claim) end(ctx context.Context) error {
	if err := c.store.Delete(ctx, restoringKey, c.mark); err != nil {
		return c.taken(err, "another process has begun to fill yard %s")
	}
	return nil
}

// leaveTime is how long a process that gives up may take to say so.
const leaveTime = 5 * time.Second

// leave ends the hold. A mark that is still there is that of what was interrupted. Safe twice.
func (c *claim) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	_ = c.hold.Release(ctx) // if it fails, others wait for some seconds
}

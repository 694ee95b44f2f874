package logs

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// askAround is how often a reader asks for a message that it was not given, although others behind it were: a
// server that has lost something leaves it out and does not say so, and who of them answers is not ours to
// choose. So often, four of five that have lost it are as good as never the only ones asked.
const askAround = 32

var (
	// errLost: a message is not there that should be.
	errLost = errors.New("message is missing")
	// errAway: likewise, and a server is away that may have it.
	errAway = errors.New("message is missing at the servers that are there")
)

// isMissing: what is asked for was not removed.
func isMissing(err error) bool { return err == errLost || err == errAway }

// gone says what became of a frame with an event that no server has: retention has removed it, here or
// at another node, or it is lost, which nobody can say while a server is away.
func (p *part) gone(ctx context.Context, seq streams.Seq, at eventlog.Sequence) error {
	var state streams.State
	var mark frames.Mark
	var ok bool
	err := p.ask(ctx, func() (err error) {
		state, err = p.s.e.cfg.Storage.State(ctx, p.s.name)
		switch {
		case err != nil:
		case seq < state.First:
			mark, ok, err = p.s.marks().since(ctx, state.First)
		case holes(state): // of this partition the old ones may be gone alone
			mark, err = p.s.marks().newest(ctx, state.First)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := p.foldedTo(ctx, mark.AsOf); err != nil { // a head beyond what is known here would not count
		return err
	}
	kept, there := mark.Find(p.subject)
	head := kept.Head
	if ok {
		head = endOf(mark.AsOf, kept.State)
	}
	switch {
	case there && p.beginsAt(head) > at:
		return errOvertaken
	case state.Absent > 0:
		return errAway
	}
	return errLost
}

// lost is what a reader hears whose own fold has missed something behind its last frame. Where retention has
// removed it, it goes on at the oldest event kept. A fold of a place that retention has passed is begun
// anew for this one: a later mark stands for what is missing. Any other is begun anew as well, many times:
// another server may have it.
func (r *reader) lost(ctx context.Context, p *part, at eventlog.Sequence, v view) error {
	from := r.fold.At() + 1
	err := p.gone(ctx, from, at)
	passed := r.begun < at
	r.fold, r.ahead = nil, nil
	switch {
	case !isMissing(err):
		return err
	case passed:
		return errOvertaken
	case r.again(at):
		if err := sleep.For(ctx, stalePause, nil); err != nil {
			return err
		}
		return errOvertaken
	case err == errAway:
		return fmt.Errorf("%s: %w: no server that is there has what is behind message %d", p.where(), eventlog.ErrUnavailable, from-1)
	}
	return p.damage(ctx, at, from, v, err)
}

// again counts that something was missing at a number. It is true as long as it is worth asking others.
func (r *reader) again(at eventlog.Sequence) bool {
	if r.missing != at {
		r.missing, r.tries = at, 0
	}
	r.tries++
	return r.tries%askAround != 0
}

// damage is the error of who cannot read on at a number, because of what is wrong or missing from a
// sequence on. What follows can be read from the first mark on that is past the number, or from the index.
func (p *part) damage(ctx context.Context, at eventlog.Sequence, from streams.Seq, v view, reason error) error {
	next := v.indexNext
	for from < v.indexSeq {
		mark, last, ok, err := p.s.marks().from(ctx, from)
		if err != nil {
			return p.storageError(ctx, err)
		}
		if !ok {
			break
		}
		if kept, there := mark.Find(p.subject); there && kept.Next > at {
			next = min(next, kept.Next)
			break
		}
		from = last + 1
	}
	return &eventlog.CorruptError{Where: p.where(), First: at, Next: next, Reason: reason.Error()}
}

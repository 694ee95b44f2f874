package groups

import (
	"math"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// act is what a client wants to do to a record.
type act uint8

const (
	actTake    act = iota // a lease, with a raised epoch
	actRenew              // a lease
	actRelease            // a lease
	actSave               // write under a lease: its checkpoint, its fence, the work on its partition
	actPut                // an entry
	actRemove             // an entry
	acts
)

// whose is what a record is to the client.
type whose uint8

const (
	nobodys   whose = iota // it does not exist, or the lease is free
	own                    // it was written with the client's secret
	anybodys               // it was written without a secret, by an older client
	abandoned              // another's, and not written again within the time that it said
	anothers
	whoses
)

// mayListen says what the right to listen is enough for. Everything takes the right to manage
// where it is not. What the yard itself runs is beyond both: see Config.Circuit, and the listener.
var mayListen = [acts][whoses]bool{
	actTake:    {nobodys: true, own: true, anybodys: true, abandoned: true},
	actRenew:   {own: true, anybodys: true},
	actRelease: {nobodys: true, own: true, anybodys: true},
	actSave:    {own: true, anybodys: true},
	actPut:     {nobodys: true, own: true, anybodys: true, abandoned: true},
	actRemove:  {own: true, anybodys: true, abandoned: true},
}

// judge says whose a record is that has an owner.
func (b bond) judge(c Caller, written, up, now time.Time) whose {
	switch {
	case b.Hash == "":
		return anybodys
	case b.Hash == c.Hash:
		return own
	case b.over(written, up, now):
		return abandoned
	}
	return anothers
}

// whoseEntry judges an entry by what stands in it; nil: there is none.
func (c Caller) whoseEntry(e *entryRecord, up, now time.Time) whose {
	if e == nil {
		return nobodys
	}
	return e.judge(c, e.Put, up, now)
}

// whoseLease judges a lease. It is its owner's also by the owner's presence.
func (c Caller) whoseLease(l leaseRecord, presence *entryRecord, up, now time.Time) whose {
	if l.Owner == "" {
		return nobodys
	}
	return c.byPresence(l.judge(c, l.renewed(presence), up, now), presence)
}

// byPresence is what another's record is to who has the presence of the instance that it names: an
// earlier life wrote it under the same id, of which nothing was heard for long.
func (c Caller) byPresence(w whose, presence *entryRecord) whose {
	if (w == anothers || w == abandoned) && c.Hash != "" && presence != nil && presence.Hash == c.Hash {
		return own
	}
	return w
}

// raised gives a lease as it is written for a client that does not manage, and what that is. An
// acquisition raises the epoch by one, whatever is asked for: else who claims the highest would
// keep everybody from the partition for ever. false: it cannot rise any more.
func raised(had leaseRecord, l processor.Lease) (processor.Lease, act, bool) {
	switch {
	case l.Owner == "":
		l.Epoch = min(l.Epoch, had.Epoch)
		return l, actRelease, true
	case l.Epoch > had.Epoch:
		l.Epoch = had.Epoch + 1
		return l, actTake, had.Epoch < math.MaxInt64
	}
	return l, actRenew, true
}

package cluster

import (
	"fmt"
	"math"
)

// sent is what one sender knows of one of its events.
type sent struct {
	// attempts is how often it was handed to a client, and acknowledged that one attempt ended well.
	attempts     int
	acknowledged bool
}

// record is everything that one sender has sent, by the number that each event carries; all of it to
// one partition.
type record struct {
	name      string
	partition int
	// once: the sender is an idempotent producer, whose events are stored once, however often they
	// are sent.
	once bool
	sent []sent
}

// stored is one event as a node gives it.
type stored struct {
	Sequence int64
	Enqueued int64 // milliseconds
	Sender   string
	Number   int
}

// reading is what one node gives of one partition, from the first event to the last.
type reading struct {
	node      string
	partition int
	events    []stored
}

// judge compares what was sent with what is there, and gives what is wrong, at most one complaint of a
// kind for each sender and reading.
func judge(records []*record, readings []reading) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	first := map[int]reading{}
	for _, r := range readings {
		judgeNumbers(r, complain)
		if one, ok := first[r.partition]; !ok {
			first[r.partition] = r
		} else if i := firstDifference(one.events, r.events); i >= 0 {
			complain("partition %d: nodes %s and %s, which have %d and %d events, differ from number %d on", r.partition, one.node, r.node, len(one.events), len(r.events), i)
		}
	}
	for _, rec := range records {
		judgeSender(rec, first[rec.partition].events, complain)
	}
	return complaints
}

// judgeNumbers: they are dense, and times never go back.
func judgeNumbers(r reading, complain func(string, ...any)) {
	for i, e := range r.events {
		if e.Sequence != int64(i) {
			complain("partition %d at node %s: number %d follows %d", r.partition, r.node, e.Sequence, i-1)
			return
		}
		if i > 0 && e.Enqueued < r.events[i-1].Enqueued {
			complain("partition %d at node %s: the time of number %d goes back", r.partition, r.node, i)
			return
		}
	}
}

func firstDifference(a, b []stored) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// judgeSender: what was acknowledged is there; nothing is there more often than it was sent, or twice
// where it must not be; and the first time that each event is there is in the order of sending.
func judgeSender(rec *record, events []stored, complain func(string, ...any)) {
	counts := make([]int, len(rec.sent))
	last, disorder := -1, false
	for _, e := range events {
		if e.Sender != rec.name {
			continue
		}
		if e.Number < 0 || e.Number >= len(counts) {
			complain("%s: number %d was never sent", rec.name, e.Number)
			return
		}
		if counts[e.Number]++; counts[e.Number] > 1 {
			continue
		}
		if e.Number < last && !disorder {
			disorder = true
			complain("%s: number %d first comes behind %d", rec.name, e.Number, last)
		}
		last = max(last, e.Number)
	}
	for i, s := range rec.sent {
		if s.acknowledged && counts[i] == 0 {
			complain("%s: number %d was acknowledged and is not there", rec.name, i)
			break
		}
	}
	for i, s := range rec.sent {
		if counts[i] > s.attempts || rec.once && counts[i] > 1 {
			complain("%s: number %d is there %d times, and was sent %d times", rec.name, i, counts[i], s.attempts)
			break
		}
	}
}

// tally is what was stored of some senders' events.
type tally struct {
	stored   int // events, however often each is there
	numbered int // those of idempotent producers among them
	resent   int // events that were handed to a client more than once, as far as is known
	twice    int // events that are there more than once
	// repeated are those that are there more than once and were acknowledged at the first attempt, or are an
	// idempotent producer's: none.
	repeated int
}

// tallyOf counts what the first node gives. Of clients that try again by themselves nobody knows how often they did.
func tallyOf(records []*record, readings []reading) (all tally) {
	first, events := map[int]bool{}, map[string]int{}
	for _, r := range readings {
		if first[r.partition] {
			continue
		}
		first[r.partition] = true
		for _, e := range r.events {
			events[fmt.Sprint(e.Sender, " ", e.Number)]++
		}
	}
	for _, rec := range records {
		for i, s := range rec.sent {
			n := events[rec.text(i)]
			all.stored += n
			if rec.once {
				all.numbered += n
			}
			if s.attempts > 1 && s.attempts != math.MaxInt {
				all.resent++
			}
			if n > 1 {
				all.twice++
			}
			if n > 1 && (rec.once || s.attempts == 1) {
				all.repeated++
			}
		}
	}
	return all
}

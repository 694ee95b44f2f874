// Package scrub reads every server's copy of a stream and compares them, message by message, while the
// stream is used: reader.go reads, gather.go has all servers answer, and this file says what differs. What
// messages mean is judged by a Check that the stream's own package has. It changes nothing, and keeps to a
// pace.
package scrub

import (
	"context"
	"errors"
	"hash/crc64"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
)

// Message is one of a stream.
type Message struct {
	Seq     uint64
	Subject string
	Data    []byte
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// sum is what messages are compared by.
func (m Message) sum() uint64 {
	sum := crc64.Checksum([]byte(m.Subject), crcTable)
	return crc64.Update(crc64.Update(sum, crcTable, []byte{0}), crcTable, m.Data)
}

// Answer is what one server has of a stream.
type Answer struct {
	Server   string
	Messages []Message
	// More: there are others behind them.
	More bool
}

// Wanted tells whether the answer of a server is waited for.
type Wanted func(server string) bool

// ErrSilent: the server that Answer names was asked, and has not answered in time.
var ErrSilent = errors.New("the server does not answer")

// Reader reads a stream. Nobody can choose which server answers; each does in its turn, at random. Its
// methods block until one has answered, or ctx ends; of a server that is not wanted they give the name
// alone. Errors: ErrSilent, or those of the connection.
type Reader interface {
	// Read gives messages from a sequence on, in their order, as many as are read at once. None: the
	// server has none from there on, or cannot read the next.
	Read(ctx context.Context, from uint64, wanted Wanted) (Answer, error)
	// Get gives one message; none: the server does not have it, or cannot read it.
	Get(ctx context.Context, seq uint64, wanted Wanted) (Answer, error)
	// Who names a server that would have answered.
	Who(ctx context.Context) (string, error)
}

// Check judges the messages of a stream, whose copies agree on them. One goroutine uses it.
type Check interface {
	// Intact finds out whether a message is what was written, by its own checksums.
	Intact(data []byte) error
	// Take takes the next message in the stream's order, and gives the numbers of its events, first to
	// next-1; both are the same where it has none.
	Take(m Message) (first, next uint64)
}

// Difference is what a server has otherwise than the others.
type Difference struct {
	Server string
	// First to Last are the sequences, Count how many of them it concerns.
	First, Last uint64
	Count       int
	// Subject is that of the first message, FirstEvent to NextEvent-1 are the numbers of its events.
	Subject               string
	FirstEvent, NextEvent uint64
	// Missing: the server does not have them, or cannot read them. Else it has others.
	Missing bool
}

// Stream is what is compared.
type Stream struct {
	// Reader reads it, and Servers are those that have a copy.
	Reader  Reader
	Servers []string
	// Patience is how long a server may take to answer at all: one that was just started does so after
	// some seconds.
	Patience time.Duration
	// First and Last are the sequences between which it is compared.
	First, Last uint64
	Check       Check
	// Pace is waited for after each read.
	Pace *Pace
	// Progress is called after each read, with what was read of it.
	Progress func(messages, bytes int64)
	// Waiting is called while servers are waited for that do not answer.
	Waiting func(servers []string)
}

// Compared is what came of it.
type Compared struct {
	Differences []Difference
	// Silent are servers that did not answer, or not to the end.
	Silent []string
}

// looks are the pauses before a message is looked at again of which copies differ: one may lag, or have
// removed a message before another did.
var looks = []time.Duration{0, 100 * time.Millisecond, time.Second, 3 * time.Second}

// certain is how many messages of a copy in a row have to differ before the rest of them is believed
// without another look.
const certain = 8

// Compare reads all copies from First to Last, gives what is right to the check, and says which servers
// have something else. It blocks until that is done, or ctx ends; memory is bounded by what is read at once
// of each copy. Errors: ErrNotSaid, those of the reader, ctx's.
func (s Stream) Compare(ctx context.Context) (Compared, error) {
	c := comparison{Stream: s, open: map[string]*Difference{}, empty: map[string]int{}, silences: map[string]int{}}
	err := c.attend(ctx)
	for from := s.First; err == nil && from <= s.Last; {
		from, err = c.window(ctx, from)
	}
	for _, server := range slices.Sorted(maps.Keys(c.open)) {
		c.close(server)
	}
	slices.SortStableFunc(c.done.Differences, func(a, b Difference) int { return strings.Compare(a.Server, b.Server) })
	return c.done, err
}

// Confirm compares once more where servers were found to differ, and gives what is still so. The caller has
// waited until those servers have all of the stream: one may have lagged for as long as Compare looked at it.
// It blocks as Compare does, and reads no more than Compare did. Errors: as Compare's.
func (s Stream) Confirm(ctx context.Context, found []Difference) (still Compared, err error) {
	check := s.Check
	for _, d := range found {
		s.First, s.Last, s.Check = d.First, d.Last, again{check, d}
		now, err := s.Compare(ctx)
		still.Silent = append(still.Silent, now.Silent...)
		s.Servers = slices.DeleteFunc(slices.Clone(s.Servers), func(server string) bool { return slices.Contains(now.Silent, server) })
		for _, one := range now.Differences {
			if one.Server == d.Server {
				still.Differences = append(still.Differences, one)
			}
		}
		if err != nil {
			return still, err
		}
	}
	return still, nil
}

// again judges messages that a check has taken already. Of a difference that has become smaller the events
// are not known any more, but for those of its first message.
type again struct {
	Check
	found Difference
}

func (a again) Take(m Message) (first, next uint64) {
	if m.Seq == a.found.First {
		return a.found.FirstEvent, a.found.NextEvent
	}
	return 0, 0
}

// comparison is one under way. Its Servers are those that answer.
type comparison struct {
	Stream
	open  map[string]*Difference // of each server, that which may go on
	empty map[string]int         // how often in a row a server had nothing where others had something
	// silences is how often in a row a server has not answered.
	silences map[string]int
	done     Compared
}

// window compares what is read at once, and gives where to go on.
func (c *comparison) window(ctx context.Context, from uint64) (next uint64, err error) {
	answers, err := c.gather(ctx, func(ctx context.Context, wanted Wanted) (Answer, error) { return c.Reader.Read(ctx, from, wanted) })
	if err != nil {
		return 0, err
	}
	end := c.cover(answers)
	for {
		r := row{has: map[string]Message{}}
		for _, a := range answers {
			if len(a.Messages) > 0 && (r.seq == 0 || a.Messages[0].Seq < r.seq) {
				r.seq = a.Messages[0].Seq
			}
		}
		if r.seq == 0 || r.seq > end {
			return end + 1, nil
		}
		for server, a := range answers {
			if len(a.Messages) > 0 && a.Messages[0].Seq == r.seq {
				r.has[server] = a.Messages[0]
				a.Messages = a.Messages[1:]
				answers[server] = a
			}
		}
		if err := c.judge(ctx, r); err != nil {
			return 0, err
		}
	}
}

// cover gives the sequence up to which all answers say what there is. A server that has nothing where
// others have something has lost its end, or cannot read one message: at first it is asked again behind
// the first message that others have.
func (c *comparison) cover(answers map[string]Answer) uint64 {
	end, least := c.Last, c.Last
	for _, a := range answers {
		if n := len(a.Messages); n > 0 {
			least = min(least, a.Messages[0].Seq)
			if a.More {
				end = min(end, a.Messages[n-1].Seq)
			}
		}
	}
	for server, a := range answers {
		if len(a.Messages) > 0 || least == c.Last {
			c.empty[server] = 0
		} else if c.empty[server]++; c.empty[server] <= certain {
			end = min(end, least)
		}
	}
	return end
}

// row is one sequence, and what each server has there.
type row struct {
	seq uint64
	has map[string]Message
}

// agree: all servers have the same.
func (c *comparison) agree(r row) bool {
	if len(r.has) < len(c.Servers) {
		return false
	}
	sum := r.has[c.Servers[0]].sum()
	return !slices.ContainsFunc(c.Servers, func(server string) bool { return r.has[server].sum() != sum })
}

// judge takes one sequence.
func (c *comparison) judge(ctx context.Context, r row) error {
	if !c.agree(r) && !c.certain(r) {
		var err error
		if r, err = c.lookAgain(ctx, r.seq); err != nil || len(r.has) == 0 {
			return err
		}
	}
	best := r.has[c.best(r)]
	first, next := c.Check.Take(best)
	for _, server := range c.Servers {
		has, there := r.has[server]
		if there && has.sum() == best.sum() {
			c.close(server)
			continue
		}
		c.note(Difference{
			Server: server, First: r.seq, Last: r.seq, Count: 1, Subject: best.Subject, FirstEvent: first, NextEvent: next, Missing: !there,
		})
	}
	return nil
}

// certain: only servers differ that have done so for a while, and in the same way.
func (c *comparison) certain(r row) bool {
	best := r.has[c.best(r)].sum()
	for _, server := range c.Servers {
		has, there := r.has[server]
		if there && has.sum() == best {
			continue
		}
		if d := c.open[server]; d == nil || d.Count < certain || d.Missing != !there {
			return false
		}
	}
	return true
}

// lookAgain asks all servers for a message until they agree, or it was long enough.
func (c *comparison) lookAgain(ctx context.Context, seq uint64) (r row, err error) {
	for _, pause := range looks {
		if err := sleep.For(ctx, pause, nil); err != nil {
			return r, err
		}
		answers, err := c.gather(ctx, func(ctx context.Context, wanted Wanted) (Answer, error) { return c.Reader.Get(ctx, seq, wanted) })
		if err != nil {
			return r, err
		}
		r = row{seq, map[string]Message{}}
		for server, a := range answers {
			if len(a.Messages) > 0 {
				r.has[server] = a.Messages[0]
			}
		}
		if len(r.has) == 0 || c.agree(r) { // it was removed, or all have it now
			break
		}
	}
	return r, nil
}

// best is a server that is right: its message is intact, and of those it is what most have.
func (c *comparison) best(r row) (best string) {
	if c.agree(r) {
		return c.Servers[0]
	}
	most := -1
	for _, server := range c.Servers {
		m, there := r.has[server]
		if !there {
			continue
		}
		alike := 0
		for _, other := range r.has {
			if other.sum() == m.sum() {
				alike++
			}
		}
		if c.Check.Intact(m.Data) == nil {
			alike += len(c.Servers)
		}
		if alike > most {
			best, most = server, alike
		}
	}
	return best
}

// note adds what a server has otherwise to what it had before.
func (c *comparison) note(now Difference) {
	d := c.open[now.Server]
	if d == nil || d.Missing != now.Missing {
		c.close(now.Server)
		c.open[now.Server] = &now
		return
	}
	d.Last = now.Last
	d.Count++
}

func (c *comparison) close(server string) {
	if d := c.open[server]; d != nil {
		c.done.Differences = append(c.done.Differences, *d)
		delete(c.open, server)
	}
}

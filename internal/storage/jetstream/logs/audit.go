package logs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// Damage is something of a stream that is not as nodes have written it.
type Damage struct {
	// Seq is the message where it shows.
	Seq streams.Seq
	// Log and Partition are whose events it concerns; Log is empty where that is not known.
	Log       string
	Partition int
	// First to Next-1 are the numbers of the events; both are the same where none are known to be lost.
	First, Next eventlog.Sequence
	Text        string

	subject string
}

// Audit folds all messages of a stream from its beginning, as nodes did one after the other, and says
// where that does not add up: frames and marks that are damaged, frames whose writer had read something
// else, marks that tell of other numbers, messages that are missing. Damage to what retention may remove
// is none. One goroutine uses it; only NewAudit and End ask the storage.
type Audit struct {
	e      *Engine
	stream string
	state  streams.State
	// begun is the sequence behind which the folds begin.
	begun streams.Seq
	at    streams.Seq // the last message that was taken
	parts map[string]*audited
	found []Damage
	more  int // how many were found that found has no room for
}

// audited is the fold of one partition.
type audited struct {
	fold *frames.Partition
	// lost: it has met something that disagrees, and goes on from a mark as of that or later.
	lost bool
	// since are the frames from a sequence on, of which some lie behind what that mark is as of.
	from  streams.Seq
	since []since
}

type since struct {
	seq    streams.Seq
	header frames.Header
}

const (
	// maxFound is how much damage of one stream is told one by one.
	maxFound = 1000
	// maxSince is how many frames may lie between a frame that disagrees and the next mark, which there
	// is at least every 4,096 frames; where there are more, it goes on from a later mark.
	maxSince = 4 * frames.MarkFrames
)

// NewAudit begins one of a stream as it is now. It blocks until the storage has answered, or ctx ends.
func NewAudit(ctx context.Context, e *Engine, name string) (*Audit, error) {
	a := &Audit{e: e, stream: name, parts: map[string]*audited{}}
	var err error
	if a.state, err = e.cfg.Storage.State(ctx, name); err != nil {
		return nil, err
	}
	a.at = a.state.First - 1
	if a.state.First <= 1 {
		return a, nil
	}
	mark, ok, err := a.marks().since(ctx, a.state.First)
	if err != nil {
		return nil, err
	}
	if !ok { // removed logs were purged, and nothing was written behind them
		a.begun = a.state.First - 1
		return a, nil
	}
	a.begun = mark.AsOf
	for _, kept := range mark.Partitions {
		a.parts[kept.Name] = &audited{fold: frames.Restore(mark.AsOf, kept)}
	}
	return a, nil
}

func (a *Audit) marks() marks { return marks{a.e.cfg.Storage, a.stream} }

// Bounds are the first and the last sequence of the stream when the audit began.
func (a *Audit) Bounds() (first, last streams.Seq) { return a.state.First, a.state.Last }

// Intact finds out whether a message is what was written, by its own checksums.
func (a *Audit) Intact(data []byte) error {
	_, err := frames.Decode(data)
	return err
}

// Take takes the next message of the stream. It gives the numbers of its events, first to next-1; both are
// the same where it has none that count.
func (a *Audit) Take(m streams.Message) (first, next eventlog.Sequence) {
	if m.Seq <= a.at {
		return 0, 0
	}
	if m.Seq > a.at+1 {
		a.missing(a.at+1, m.Seq-1)
	}
	a.at = m.Seq
	frame, err := frames.Decode(m.Data)
	h := hear(m)
	switch {
	case err != nil && m.Subject == markSubject:
		a.note(Damage{Seq: m.Seq, subject: m.Subject, Text: "mark: " + err.Error()})
	case h.damaged != nil:
		if err == nil { // it is under the subject of another kind
			err = h.damaged
		}
		d := Damage{Seq: m.Seq, subject: m.Subject, Text: err.Error()}
		if p := a.parts[m.Subject]; p != nil && !p.lost {
			d.First = p.fold.State().Next
			d.Next = d.First
		}
		a.note(d)
	case m.Subject == markSubject:
		if m.Seq > a.begun {
			a.takeMark(m.Seq, frame)
		}
	default:
		if m.Seq > a.begun {
			first, next = a.takeFrame(m.Seq, m.Subject, h.header)
		}
		if err != nil { // nodes count it by its header all the same
			a.note(Damage{Seq: m.Seq, subject: m.Subject, First: first, Next: next, Text: err.Error()})
		}
	}
	return first, next
}

// missing notes messages that no server has. In a pool they may be those of a log that was removed, so
// that there only the folds tell.
func (a *Audit) missing(first, last streams.Seq) {
	if log, ok := hubLog(a.stream); ok {
		text := fmt.Sprintf("message %d is missing at every server", first)
		if last > first {
			text = fmt.Sprintf("messages %d to %d are missing at every server", first, last)
		}
		a.note(Damage{Seq: last, Log: log, Partition: -1, Text: text})
	}
}

func (a *Audit) part(subject string) *audited {
	p := a.parts[subject]
	if p == nil {
		p = &audited{fold: frames.Restore(a.begun, frames.PartitionState{})}
		a.parts[subject] = p
	}
	return p
}

// takeFrame folds a frame, and gives the numbers of its events.
func (a *Audit) takeFrame(seq streams.Seq, subject string, h frames.Header) (first, next eventlog.Sequence) {
	p := a.part(subject)
	if !p.lost {
		verdict := p.fold.Apply(seq, h)
		switch verdict.Outcome {
		case frames.Hole:
		case frames.Counted:
			return verdict.First, verdict.First + eventlog.Sequence(h.Events)
		default:
			return 0, 0
		}
		p.lost, p.from, p.since = true, seq, nil
		a.note(Damage{
			Seq: seq, subject: subject, First: verdict.Missing.First, Next: verdict.Missing.Next,
			Text: fmt.Sprintf("the writer of message %d had read %d events, and the messages before it make %d", seq, h.Base.Next, p.fold.State().Next),
		})
	}
	if len(p.since) == maxSince {
		p.from, p.since = seq, nil
	}
	p.since = append(p.since, since{seq, h})
	return 0, 0
}

// takeMark compares the folds with a mark. One that has met something that disagrees goes on from there.
func (a *Audit) takeMark(seq streams.Seq, frame frames.Frame) {
	mark, err := frames.DecodeMark(frame)
	if err != nil {
		a.note(Damage{Seq: seq, subject: markSubject, Text: "mark: " + err.Error()})
		return
	}
	for _, kept := range mark.Partitions {
		p := a.part(kept.Name)
		has := p.fold.State().Next
		switch {
		case p.lost:
			a.resume(p, mark.AsOf, kept)
			continue
		case has == 0 && kept.Next > 0: // it begins with what was imported, or has lost all
			begun, _ := p.fold.Snapshot(kept.Name)
			begun.State = kept.State
			p.fold = frames.Restore(seq, begun)
			if has = kept.Head.First; has == kept.Next {
				continue
			}
		case p.fold.Agrees(min(mark.AsOf, p.fold.At()), kept.Next): // the whole stream is folded, beyond its frames
			continue
		default:
			p.lost, p.from = true, seq+1
		}
		a.note(Damage{
			Seq: seq, subject: kept.Name, First: min(has, kept.Next), Next: max(has, kept.Next),
			Text: fmt.Sprintf("the mark at message %d counts %d events, and the messages before it make %d", seq, kept.Next, has),
		})
	}
}

// resume goes on as of a mark, with what lies behind that, if all of it is known.
func (a *Audit) resume(p *audited, asOf streams.Seq, kept frames.PartitionState) {
	if asOf+1 < p.from {
		return
	}
	behind := p.since
	*p = audited{fold: frames.Restore(asOf, kept)}
	for _, s := range behind {
		if s.seq > asOf {
			a.takeFrame(s.seq, kept.Name, s.header)
		}
	}
}

func (a *Audit) note(d Damage) {
	if d.subject != "" && d.subject != markSubject {
		d.Log, d.Partition = PartitionOf(a.stream, d.subject)
	}
	if len(a.found) >= maxFound {
		a.more++
		return
	}
	a.found = append(a.found, d)
}

// PartitionOf gives the partition that a subject of a stream is of; the log is empty where it is of none.
func PartitionOf(stream, subject string) (log string, number int) {
	log, ok := logOf(stream, subject)
	if !ok {
		return "", 0
	}
	number, _ = strconv.Atoi(subject[strings.LastIndexByte(subject, '/')+1:])
	return log, number
}

// End gives what is wrong, and how many more there were. It looks again at what the stream keeps: what
// was removed meanwhile, by retention or with its log, is not told of. It blocks until the storage has
// answered, or ctx ends. Errors: streams.ErrNoStream where the stream was removed; the storage's.
func (a *Audit) End(ctx context.Context) (found []Damage, more int, err error) {
	if a.at < a.state.Last {
		a.missing(a.at+1, a.state.Last)
	}
	if len(a.found) == 0 {
		return nil, 0, nil
	}
	state, err := a.e.cfg.Storage.State(ctx, a.stream)
	if err != nil {
		return nil, 0, err
	}
	newest, err := a.marks().newest(ctx, state.First)
	if err != nil {
		return nil, 0, err
	}
	var trimmed streams.Seq // some partition needs nothing before it
	for _, kept := range newest.Partitions {
		trimmed = max(trimmed, kept.Head.Seq)
	}
	for _, d := range a.found {
		gap := d.subject == "" && d.Partition < 0
		kept, _ := newest.Find(d.subject)
		switch {
		case d.Seq < state.First:
		case gap && d.Seq < trimmed:
		case d.Next > d.First && d.Next <= kept.Head.First:
		case d.subject != "" && d.Next == d.First && d.Seq < kept.Head.Seq:
		case d.Log != "" && a.gone(ctx, d.Log):
		default:
			found = append(found, d)
		}
	}
	return found, a.more, nil
}

// gone: the log was removed.
func (a *Audit) gone(ctx context.Context, log string) bool {
	d, revision, err := a.e.read(ctx, log)
	return err == nil && (revision == 0 || d.state == isRemoved)
}

// LostStreams are the streams that logs should have and that are not there, each with a log that uses
// it: what it held is lost. It blocks until the storage has answered, or ctx ends.
func (e *Engine) LostStreams(ctx context.Context) (map[string]string, error) {
	logs, err := e.Logs(ctx)
	if err != nil {
		return nil, err
	}
	lost := map[string]string{}
	for _, l := range logs {
		d, _, err := e.read(ctx, l.Name)
		if err != nil {
			return nil, err
		}
		if d.state != isLive {
			continue
		}
		for _, stream := range streamsOf(l.Name, d) {
			lost[stream] = l.Name
		}
	}
	names, err := e.cfg.Storage.Names(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		delete(lost, name)
	}
	for stream, log := range lost { // it may have been removed meanwhile
		if _, err := e.cfg.Storage.State(ctx, stream); !errors.Is(err, streams.ErrNoStream) || e.isRemoved(ctx, log) {
			delete(lost, stream)
		}
	}
	return lost, nil
}

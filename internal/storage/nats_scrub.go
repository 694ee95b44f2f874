package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/scrub"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/survey"
)

// Scrubbing is how a scrub is done, and who hears of it.
type Scrubbing struct {
	// Rate is how many bytes are read in a second at most, over all servers; 0 means any number.
	Rate int64
	// Progress is called when it begins, after each read, and while a server is waited for; Found with each
	// finding; Warn with a sentence on a server, as soon as it is known that a copy of it is not compared.
	// All are called by the goroutine of the scrub, which waits for them.
	Progress func(ScrubProgress)
	Found    func(ScrubFinding)
	Warn     func(text string)
}

// ScrubProgress is how far a scrub has come.
type ScrubProgress struct {
	// Stream is what is being read; Done of all Streams have been.
	Stream        string
	Done, Streams int
	// Messages and Bytes are what was read, of all copies.
	Messages, Bytes int64
	// Waiting are the servers that are waited for at the moment.
	Waiting []string
}

// ScrubKind is what kind of finding it is.
type ScrubKind string

// The kinds.
const (
	// CopyMissing: a server does not have, or cannot read, what others have.
	CopyMissing ScrubKind = "missing"
	// CopyDiffers: a server has something else than others.
	CopyDiffers ScrubKind = "differs"
	// Damaged: what all servers have is not as it was written, or something is missing at all of them.
	Damaged ScrubKind = "damaged"
	// MemoryDiffers: this node has an entry otherwise than the servers.
	MemoryDiffers ScrubKind = "memory"
	// StreamLost: a stream is not there whose log is.
	StreamLost ScrubKind = "lost"
)

// ScrubFinding is something that is not as it should be.
type ScrubFinding struct {
	Kind   ScrubKind
	Stream string
	// Server has it otherwise than the others; empty where all are alike.
	Server string
	// FirstMessage to LastMessage are sequences of the stream, Messages how many of them it concerns.
	FirstMessage, LastMessage uint64
	Messages                  int
	// Log is whose events it concerns, empty: of none; Partition is -1 where it is not known which.
	Log       string
	Partition int
	// FirstEvent to NextEvent-1 are the numbers of events; both are the same where none are known.
	FirstEvent, NextEvent uint64
	// Entry is the key of an entry, Body the name of a body.
	Entry, Body string
	Text        string
}

// Scrubbed is what a scrub has looked at.
type Scrubbed struct {
	ScrubProgress
	// Servers are those whose copies were read.
	Servers []string
	// Findings is how many there were.
	Findings int
	// Problems are what could not be looked at, and why.
	Problems []string
}

// scrubbing is one under way.
type scrubbing struct {
	Scrubbing
	n        *natsNode
	pace     scrub.Pace
	audits   map[string]*entries.Audit
	servers  map[string]bool
	patience time.Duration // how long a server may take to answer at all
	// late are the servers that were behind for as long as is waited for that, and have been since.
	late map[string]bool
	// unread are the servers with copies that were not read, by the reason, with how many streams.
	unread map[string]int
	report Scrubbed
}

// scrub reads every server's copy of all streams, compares them, and judges what is in them. It changes
// nothing, and goes on behind what it finds. It blocks until it is done, or ctx ends.
func (n *natsNode) scrub(ctx context.Context, s Scrubbing) (Scrubbed, error) {
	r := &scrubbing{
		Scrubbing: s, n: n, pace: scrub.Pace{Rate: s.Rate}, audits: entries.NewAudits(n.entries), servers: map[string]bool{}, unread: map[string]int{},
		patience: attendTime, late: map[string]bool{},
	}
	r.progress(0, 0)
	found, missing, err := survey.All(ctx, n.conns.Control, n.cfg.Yard)
	if err != nil {
		return Scrubbed{}, err
	}
	for _, name := range missing {
		r.problem("stream %s has no leader and was not looked at", name)
	}
	var names []string
	for _, info := range found {
		if r.known(info.Config.Name) {
			names = append(names, info.Config.Name)
		}
	}
	slices.Sort(names)
	r.report.Streams = len(names)
	for _, name := range names {
		r.report.Stream = name
		err := r.stream(ctx, name)
		switch {
		case ctx.Err() != nil:
			return r.report, context.Cause(ctx)
		case err != nil && !errors.Is(err, streams.ErrNoStream) && !errors.Is(err, jetstream.ErrStreamNotFound):
			r.problem("stream %s was not looked at to its end: %v", name, err)
		}
		r.report.Done++
	}
	return r.end(ctx)
}

// end looks for streams that are gone, and sums up.
func (r *scrubbing) end(ctx context.Context) (Scrubbed, error) {
	lost, err := r.n.engine.LostStreams(ctx)
	if err != nil {
		return r.report, err
	}
	for _, stream := range slices.Sorted(maps.Keys(lost)) {
		r.found(ScrubFinding{Kind: StreamLost, Stream: r.n.streams.Named(stream), Log: lost[stream], Partition: -1, Text: "the stream is not there, and its log is"})
	}
	for _, why := range slices.Sorted(maps.Keys(r.unread)) {
		r.problem("%s: its copies of %d streams were not compared", why, r.unread[why])
	}
	r.report.Stream, r.report.Waiting, r.report.Servers = "", nil, slices.Sorted(maps.Keys(r.servers))
	return r.report, nil
}

func (r *scrubbing) problem(format string, args ...any) {
	r.report.Problems = append(r.report.Problems, fmt.Sprintf(format, args...))
}

func (r *scrubbing) found(f ScrubFinding) {
	r.report.Findings++
	if r.Found != nil {
		r.Found(f)
	}
}

// known: it is a stream of entries, bodies or logs. A node that starts makes one for a moment that is not.
func (r *scrubbing) known(name string) bool {
	_, ours := r.n.streams.Ours(name)
	return ours || r.audits[name] != nil || name == r.n.bodies.Stream()
}

// stream compares the copies of one stream.
func (r *scrubbing) stream(ctx context.Context, name string) error {
	servers, err := r.copies(ctx, name)
	if err != nil {
		return err
	}
	check, first, last, err := r.check(ctx, name)
	if err != nil || last < first {
		return err
	}
	copies := scrub.Stream{
		Reader: scrub.StreamReader{Conn: r.n.conns.Read, Stream: name}, Servers: servers, Patience: r.patience,
		First: first, Last: last, Check: check, Pace: &r.pace, Progress: r.progress, Waiting: r.waiting,
	}
	done, err := copies.Compare(ctx)
	if len(servers) == 0 {
		r.servers[r.n.conns.Read.ConnectedServerName()] = true
	}
	for _, server := range servers {
		r.servers[server] = true
	}
	r.silent(done.Silent)
	copies.Servers = slices.DeleteFunc(servers, func(server string) bool { return slices.Contains(done.Silent, server) })
	if len(done.Differences) > 0 && ctx.Err() == nil {
		err = errors.Join(err, r.differ(ctx, name, copies, done.Differences))
	}
	if err != nil {
		return err
	}
	return check.end(ctx, r)
}

// silent notes the servers that have not answered, or not to the end. The next stream waits for none.
func (r *scrubbing) silent(servers []string) {
	for _, server := range servers {
		r.patience = 0
		r.leaveOut("server " + server + " does not answer")
	}
}

// leaveOut notes that a server's copy of a stream is not compared, and why. It is said at once, and once.
func (r *scrubbing) leaveOut(why string) {
	if r.unread[why]++; r.unread[why] == 1 && r.Warn != nil {
		r.Warn(why + ": what it keeps is not compared")
	}
}

func (r *scrubbing) progress(messages, bytes int64) {
	r.report.Messages += messages
	r.report.Bytes += bytes
	r.waiting(nil)
}

// waiting says how far it is, and which servers are waited for.
func (r *scrubbing) waiting(servers []string) {
	if r.report.Waiting = servers; r.Progress != nil {
		r.Progress(r.report.ScrubProgress)
	}
}

// copies are the servers that have a copy which can be compared. It is empty where there is one server
// alone.
func (r *scrubbing) copies(ctx context.Context, name string) (all []string, err error) {
	servers, _, err := r.holders(ctx, name)
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		if wrong := servers[server]; wrong != "" {
			r.leaveOut("server " + server + " is " + wrong)
			continue
		}
		all = append(all, server)
	}
	return all, err
}

// attendTime is how long a server may take until it answers reads of a stream: after a start it does so when
// some seconds have passed, and leaves it to others until then.
const attendTime = 10 * time.Second

// settleTime is how long a server that is behind may take to have all of a stream; settlePause is the pause
// between two looks. While a stream is written to, a server is behind every now and then for a moment.
const (
	settleTime  = 5 * time.Second
	settlePause = 200 * time.Millisecond
)

// holders are the servers that have a copy of a stream, each with what is wrong with it, if something is
// for a while; and the first sequence that they keep. A server that was waited for in vain is not waited
// for again before it was seen to have all of a stream: one that is gone would hold up each stream.
func (r *scrubbing) holders(ctx context.Context, name string) (servers map[string]string, first uint64, err error) {
	current := map[string]bool{}
	for late := time.Now().Add(settleTime); ; {
		info, err := streamInfo(ctx, r.n.conns.Control, name)
		if err != nil {
			return nil, 0, err
		}
		servers = copiesOf(info)
		var behind []string
		for server, wrong := range servers {
			switch {
			case wrong == "":
				current[server], r.late[server] = true, false
			case wrong == isBehind && current[server]:
				servers[server] = ""
			case wrong == isBehind && !r.late[server]:
				behind = append(behind, server)
			}
		}
		if len(behind) == 0 {
			return servers, info.State.FirstSeq, nil
		}
		if time.Now().After(late) {
			for _, server := range behind {
				r.late[server] = true
			}
			return servers, info.State.FirstSeq, nil
		}
		slices.Sort(behind)
		r.waiting(behind)
		if err := sleep.For(ctx, settlePause, nil); err != nil {
			return nil, 0, err
		}
	}
}

// What can be wrong with a copy.
const (
	isOffline = "offline"
	isBehind  = "behind"
)

// copiesOf gives the servers that have a stream, each with what is wrong with it now, if something is.
func copiesOf(info *jetstream.StreamInfo) map[string]string {
	all := map[string]string{}
	if info.Cluster == nil {
		return all
	}
	if info.Cluster.Leader != "" {
		all[info.Cluster.Leader] = ""
	}
	for _, r := range info.Cluster.Replicas {
		switch {
		case r.Offline:
			all[r.Name] = isOffline
		case !r.Current:
			all[r.Name] = isBehind
		default:
			all[r.Name] = ""
		}
	}
	return all
}

// differ reports what servers have otherwise. One that is behind by now has it soon; one that is not may
// have caught up since it was compared, and is looked at again.
func (r *scrubbing) differ(ctx context.Context, name string, copies scrub.Stream, found []scrub.Difference) error {
	now, first, err := r.holders(ctx, name)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(d scrub.Difference) bool {
		behind := d.Missing && now[d.Server] != ""
		if behind {
			r.leaveOut("server " + d.Server + " is " + now[d.Server])
		}
		return behind || d.Last < first // it was removed meanwhile
	})
	still, err := copies.Confirm(ctx, found)
	r.silent(still.Silent)
	for _, d := range still.Differences {
		f := ScrubFinding{
			Kind: CopyDiffers, Stream: name, Server: d.Server, FirstMessage: d.First, LastMessage: d.Last, Messages: d.Count,
			Partition: -1, FirstEvent: d.FirstEvent, NextEvent: d.NextEvent, Text: "the server has something else than the others",
		}
		if d.Missing {
			f.Kind, f.Text = CopyMissing, "the server does not have, or cannot read, what the others have"
		}
		r.of(&f, d.Subject)
		r.found(f)
	}
	return err
}

// of says what a subject is of.
func (r *scrubbing) of(f *ScrubFinding, subject string) {
	if stream, is := r.n.streams.Ours(f.Stream); is {
		f.Log, f.Partition = logs.PartitionOf(stream, subject[strings.LastIndexByte(subject, '.')+1:])
		if f.Log == "" {
			f.Partition = -1
		}
	}
}

func streamInfo(ctx context.Context, conn *nats.Conn, name string) (*jetstream.StreamInfo, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo(), nil
}

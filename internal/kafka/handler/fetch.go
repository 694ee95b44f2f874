package handler

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// What an answer has at most, whatever its client allows.
const (
	maxAnswerBytes    = 50 << 20
	maxPartitionBytes = 8 << 20
)

// fetcher answers the fetches of one connection. The connection's writing goroutine alone uses it.
type fetcher struct {
	peer    *peer
	readers *readers
	session fetchSession

	extents []eventlog.Extent
	runs    []eventlog.Run
}

func newFetcher(p *peer) *fetcher {
	kept := p.handler.kept
	return &fetcher{peer: p, readers: newReaders(&claim{of: kept}), session: fetchSession{kept: &claim{of: kept}}}
}

func (f *fetcher) close() {
	f.session.end()
	f.readers.close()
}

// rest gives back what fetches need no more until the next.
func (f *fetcher) rest() {
	f.readers.rest()
	clear(f.runs[:cap(f.runs)]) // they point into what the readers had
	if cap(f.runs) > maxKeptRuns {
		f.runs = nil
	}
}

// portion is what one partition has for an answer.
type portion struct {
	item   *fetchItem
	reader *reader
	hub    broker.Hub
	code   int16
	// end and start are the partition's bounds; -1 where it cannot be read. stable is where what is committed ends.
	end, start, stable int64
	// full: there is more, or may be, than the answer has room for.
	full bool
	// stretch is sent as it is stored, behind records, which were made here.
	stretch stretch
	records []byte
	// events is how many were made into records.
	events int
}

// unknownStable: nobody has looked where what is committed ends.
const unknownStable = -1

// failed is a portion of nothing but an error.
func failed(item *fetchItem, code int16) portion {
	return portion{item: item, code: code, end: -1, start: -1, stable: unknownStable}
}

// bytes is how many bytes of records the portion has.
func (p *portion) bytes() int { return len(p.records) + p.stretch.bytes }

// fetch is one fetch under way.
type fetch struct {
	*fetcher
	fetchTurn
	request  *kmsg.FetchRequest
	portions []portion
	// overhead is what is counted for its partitions, whatever they have.
	overhead int
	// topics are the hubs that were found, or why there is none, since somebody last looked.
	topics map[topic]found
}

// partitionBytes is what is counted for each partition of a fetch while that is under way; freePartitions
// are not counted, so that most fetches have nothing that others could wait for.
const (
	partitionBytes = 1 << 10
	freePartitions = 64
)

type found struct {
	hub broker.Hub
	err error
}

// answer answers a fetch: once there is as much as its client wants, or its time is over.
//
// Fetch (1), versions 4 to 18; sessions from 7 on, by id from 13 on. There is one leader epoch, and no
// replica to prefer. Who reads what is committed is given all batches before the first that is not decided, and is told
// which of them do not count.
func (f *fetcher) answer(ctx context.Context, r *kmsg.FetchRequest, w *kafka.Writer) error {
	f.readers.fetches++
	defer f.rest()
	one := &fetch{fetcher: f, fetchTurn: f.session.open(r), request: r}
	if one.code != codeNone {
		refused := kmsg.NewPtrFetchResponse()
		refused.ErrorCode = one.code
		return w.Respond(refused)
	}
	one.overhead = max(0, len(one.items)-freePartitions) * partitionBytes
	if one.overhead > 0 {
		if err := w.Take(ctx, one.overhead); err != nil {
			return err
		}
	}
	if err := one.gather(ctx, w.Hurried()); err != nil {
		return err
	}
	return one.send(ctx, w)
}

// gather looks what there is until that is enough, or it is hurried. A failure is enough: its client is to
// hear of it.
func (f *fetch) gather(ctx context.Context, hurried <-chan struct{}) error {
	wait := time.NewTimer(time.Duration(max(f.request.MaxWaitMillis, 0)) * time.Millisecond)
	defer wait.Stop()
	f.readers.wake()
	for over := f.request.MaxWaitMillis <= 0 || len(f.items) == 0; ; {
		bytes, failed := f.round(ctx)
		if over || failed || bytes > 0 && bytes >= min(int(f.request.MinBytes), f.maxBytes()) || f.request.MinBytes <= 0 {
			return nil
		}
		f.await(ctx)
		select {
		case <-f.readers.waker.C():
			f.readers.wake()
		case <-wait.C:
			over = true
		case <-f.peer.conn.Draining():
			over = true
		case <-hurried:
			over = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// await has the fetch woken when one of its partitions has more.
func (f *fetch) await(ctx context.Context) {
	for i := range f.portions {
		p := &f.portions[i]
		if p.full || p.stretch.bytes > 0 && int64(p.stretch.next) < p.end {
			continue
		}
		if err := f.readers.wait(ctx, f.broker(), p.reader, p.reader.behind(p.stretch)); err != nil {
			f.readers.drop(p.reader) // the next look says why
		}
	}
}

// round looks at all partitions in turn. Rights are looked at anew.
func (f *fetch) round(ctx context.Context) (bytes int, anyFailed bool) {
	f.topics = make(map[topic]found)
	f.portions = f.portions[:0]
	for _, item := range f.items {
		p := portion{item: item}
		if err := f.look(ctx, &p, f.maxBytes()-bytes, bytes == 0); err != nil {
			p, anyFailed = f.fail(ctx, &p, err), true
		}
		bytes += p.bytes()
		f.portions = append(f.portions, p)
	}
	return bytes, anyFailed
}

// fail gives the portion of a partition that cannot be read.
func (f *fetch) fail(ctx context.Context, p *portion, err error) portion {
	f.readers.drop(p.reader)
	return failed(p.item, f.peer.fail(ctx, "Fetch", err))
}

func (f *fetch) broker() *broker.Broker { return f.peer.handler.cfg.Broker }

// readCommitted is the isolation level of who reads what is committed.
const readCommitted = 1

func (f *fetch) committed() bool { return f.request.IsolationLevel == readCommitted }

func (f *fetch) maxBytes() int { return min(max(int(f.request.MaxBytes), 1), maxAnswerBytes) }

// look finds out what a partition has, of at most so many bytes. The first that has something gives a
// batch, however large it is; others only what there is room for.
func (f *fetch) look(ctx context.Context, p *portion, room int, alone bool) error {
	if err := f.locate(ctx, p); err != nil {
		return err
	}
	if p.reader = f.readers.of(p.item, p.hub); p.reader == nil {
		return fmt.Errorf("%w: it names partition %d of %.64q by several names", errInvalid, p.item.partition, p.hub.Name)
	}
	if err := f.readers.seek(ctx, f.broker(), p.reader, eventlog.Sequence(p.item.offset)); err != nil {
		return err
	}
	p.stretch.first = p.reader.cursor.At()
	p.stretch.next = p.stretch.first
	dry := p.reader.dry && p.reader.waiting // nothing has come since it was last looked at
	p.stable = unknownStable
	defer func() {
		switch {
		case f.committed() && p.reader.stable != eventlog.NoSequence:
			p.stable = int64(p.reader.stable)
		case p.stable == unknownStable:
			p.stable = p.end
		}
	}()
	if dry && f.incremental && p.item.end >= 0 {
		p.end, p.start = p.item.end, p.item.start // as its client knows
		return nil
	}
	// First the bounds: what is behind them then will wake the reader.
	first, next, err := f.peer.bounds(ctx, p.hub, int(p.item.partition))
	if err != nil {
		return err
	}
	p.start, p.end = int64(first), max(int64(next), int64(p.stretch.next))
	if !dry {
		err = f.skim(ctx, p, room, alone)
	}
	if err == nil && f.committed() && p.reader.stable == eventlog.NoSequence && int64(p.stretch.next) < p.end {
		err = f.findStable(ctx, p)
	}
	return err
}

// findStable finds where what is committed ends, for a reader that has not come there.
func (f *fetch) findStable(ctx context.Context, p *portion) error {
	stable, err := f.broker().LastStable(ctx, p.hub.Name, strconv.Itoa(int(p.item.partition)))
	p.stable = min(max(int64(stable), int64(p.stretch.next)), p.end)
	return err
}

// locate finds a partition's hub for who may read it.
func (f *fetch) locate(ctx context.Context, p *portion) error {
	t, known := f.topics[p.item.topic]
	if !known {
		t.hub, t.err = f.peer.find(ctx, p.item.topic, auth.Listen)
		f.topics[p.item.topic] = t
	}
	if t.err != nil {
		return t.err
	}
	if p.item.leaderEpoch > leaderEpoch {
		return errLeaderEpoch
	}
	p.hub = t.hub
	return partition(t.hub, p.item.partition)
}

// skim looks at headers.
func (f *fetch) skim(ctx context.Context, p *portion, room int, alone bool) error {
	if p.full = room <= 0; p.full {
		return nil
	}
	limit := min(room, max(int(p.item.maxBytes), 1), maxPartitionBytes)
	s, err := p.reader.look(ctx, f.broker(), &f.extents, limit, f.committed(), func(damage *eventlog.CorruptError) { f.passed(p, damage) })
	if cap(f.extents) > maxKeptExtents {
		f.extents = nil
	}
	if err != nil {
		return err
	}
	if p.full = s.bytes > limit && !alone; p.full {
		s = stretch{first: s.first, next: s.first}
	}
	p.stretch, p.end = s, max(p.end, int64(s.next))
	return nil
}

// For how many there is room between fetches.
const (
	maxKeptExtents = 4096
	maxKeptRuns    = 256
)

// passed is called where stored events cannot be read.
func (f *fetch) passed(p *portion, damage *eventlog.CorruptError) {
	f.peer.handler.metrics.damage.Inc()
	f.peer.log.Error("stored events cannot be read", "hub", p.hub.Name, "partition", p.item.partition,
		"first", int64(damage.First), "next", int64(damage.Next), "error", damage)
}

// send sends the answer.
func (f *fetch) send(ctx context.Context, w *kafka.Writer) error {
	buffer := f.peer.handler.buffers.Get().(*[]byte)
	defer f.giveBack(buffer)
	if size := f.size(); size > 0 {
		if err := w.Take(ctx, f.overhead+min(max(2*size, minHeldBytes), eventlog.MaxHeldBytes)); err != nil {
			return err
		}
	}
	*buffer = f.make(ctx, (*buffer)[:0])
	mentioned := f.mentioned()
	for _, p := range mentioned {
		if p.code != codeNone {
			w.Failed(p.code)
		}
	}
	f.session.served(given(mentioned))
	return f.write(ctx, w, mentioned)
}

// minHeldBytes is what a cursor holds that reads anything.
const minHeldBytes = 256 << 10

// size is how many bytes will be read.
func (f *fetch) size() (bytes int) {
	for i := range f.portions {
		bytes += f.portions[i].stretch.bytes
	}
	return bytes
}

// maxKeptBuffer is what a buffer may measure that is used again.
const maxKeptBuffer = 4 << 20

func (f *fetch) giveBack(buffer *[]byte) {
	if cap(*buffer) <= maxKeptBuffer {
		f.peer.handler.buffers.Put(buffer)
	}
}

// mentioned are the portions that the answer speaks of: in a session those with something new.
func (f *fetch) mentioned() []*portion {
	all := make([]*portion, 0, len(f.portions))
	for i := range f.portions {
		p := &f.portions[i]
		if !f.incremental || p.bytes() > 0 || p.code != codeNone || p.end != p.item.end || p.start != p.item.start {
			all = append(all, p)
		}
		p.item.end, p.item.start = p.end, p.start
	}
	return all
}

// given tells which partitions were given something.
func given(portions []*portion) func(*fetchItem) bool {
	items := make(map[*fetchItem]bool)
	for _, p := range portions {
		items[p.item] = p.bytes() > 0
	}
	return func(i *fetchItem) bool { return items[i] }
}

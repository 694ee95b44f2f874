package disk_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	crashSeeds = flag.Int("crash.seeds", 2000, "how many seeds the power-cut test runs")
	crashSeed  = flag.Uint64("crash.seed", 0, "run this one seed only")
)

// TestPowerCuts drives appends, reads, rolls, retention, removals and restarts by a seed, with full
// disks and failing operations of all kinds among them, and cuts the power between any two
// operations. What was acknowledged has to be there, in order, dense, with the right bodies; what
// was not is there whole or not at all, and what once was found missing never comes back. // H2,
// H3, H4
func TestPowerCuts(t *testing.T) {
	if *crashSeed != 0 {
		powerCuts(t, *crashSeed)
		return
	}
	for shard := range 4 {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for seed := shard + 1; seed <= *crashSeeds && !t.Failed(); seed += 4 {
				powerCuts(t, uint64(seed))
			}
		})
	}
}

func powerCuts(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	mem := vfs.NewMem()
	mem.SetRand(rand.New(rand.NewPCG(seed, 2)))
	y := &yard{t: t, seed: seed, rnd: rnd, mem: mem}
	y.mode, y.alike = disk.Always, rnd.IntN(3) == 0
	if rnd.IntN(5) == 0 {
		y.mode = disk.SyncMode(1 + rnd.IntN(2))
	}
	y.segmentBytes, y.keepBytes = 4<<10, 40<<10
	if rnd.IntN(24) == 0 {
		y.large, y.segmentBytes, y.keepBytes = true, 256<<10, 1<<20
	}
	y.frames = rnd.IntN(3)
	for i := range 1 + rnd.IntN(3) {
		y.parts = append(y.parts, &model{id: eventlog.PartitionID{Log: "crash-1", Number: i}})
	}
	for range 2 + rnd.IntN(4) {
		if y.live(); y.lossy {
			y.afterLoss()
			y.wantRemoved()
			return
		}
		if t.Failed() {
			t.Logf("%v; run again with: go test ./internal/storage/disk -run TestPowerCuts -crash.seed=%d", y.mode, seed)
			return
		}
	}
}

// yard is the engine under test and what it owes.
type yard struct {
	t      *testing.T
	seed   uint64
	rnd    *rand.Rand
	mode   disk.SyncMode
	mem    *vfs.Mem
	faulty *vfs.Faulty
	engine *disk.Engine
	parts  []*model
	nextID uint64
	// alike makes all batches the same size, so that what an earlier life left behind the
	// end lies exactly where a new batch ends.
	alike bool
	// frames is how often batches are frames: never, in every second case, always.
	frames int
	// large makes some batches larger than what is written by way of the journal.
	large        bool
	segmentBytes int64
	keepBytes    int64
	// doomed is a log that is removed now and then, and goes on under another name; removed
	// are the names that must not be there any more.
	doomed  *model
	logs    int
	removed []string
	// lossy is set once power was cut in a mode that may lose what it acknowledged.
	lossy bool
}

// model is what one partition owes.
type model struct {
	id eventlog.PartitionID
	// stored are the batches that must be there, by their first number.
	stored []batch
	// doubtful ones may be there, whole. dead ones must not.
	doubtful map[uint64]batch
	dead     map[uint64]bool
	trimmed  eventlog.Sequence
	p        eventlog.Partition
	// halfRemoved is set while a removal has begun and not succeeded.
	halfRemoved bool
}

// In a batch's id: alike says that it has the one size of all such batches, large that it
// is one of more than 64 KiB, framed that it is a frame.
const (
	alike  = 1 << 63
	large  = 1 << 62
	framed = 1 << 61
)

// batch is an appended batch: its bodies follow from its id.
type batch struct {
	id    uint64
	first eventlog.Sequence
	count int
}

// live is one life of the process: open, check, work until the plug is pulled.
func (y *yard) live() {
	if !y.open() {
		return
	}
	for _, m := range y.parts {
		y.reconcile(m)
	}
	y.reconcileDoomed()
	if y.rnd.IntN(3) > 0 {
		y.mem.FailAfter(y.rnd.IntN(120))
	}
	y.injectFaults()
	for range 5 + y.rnd.IntN(60) {
		y.step(y.parts[y.rnd.IntN(len(y.parts))])
		if y.rnd.IntN(30) == 0 {
			y.useDoomed()
		}
	}
	y.pullThePlug()
}

// open starts the engine; a start may itself meet the power cut.
func (y *yard) open() bool {
	if y.rnd.IntN(4) == 0 {
		y.mem.FailAfter(y.rnd.IntN(12))
	}
	y.faulty = vfs.NewFaulty(y.mem)
	if y.rnd.IntN(8) == 0 {
		y.failAtRandom(y.nextID, 12)
	}
	cfg := config(y.mode, y.faulty)
	cfg.SegmentBytes = y.segmentBytes
	if y.rnd.IntN(2) == 0 {
		cfg = disk.Journaling(cfg, int64(1+y.rnd.IntN(20<<10)), true)
	}
	engine, err := disk.Open(cfg)
	if err != nil {
		y.expectFault(err)
		y.cutPower()
		return false
	}
	y.engine = engine
	for _, m := range y.parts {
		if err = engine.Provide(y.t.Context(), m.id.Log, eventlog.Shape{Partitions: 64, Retention: y.retention()}); err == nil {
			m.p, err = engine.Partition(m.id)
		}
		if err != nil {
			y.t.Fatalf("seed %d: %v", y.seed, err)
		}
		if _, err := m.p.Bounds(y.t.Context()); err != nil {
			y.expectFault(err)
			y.pullThePlug()
			return false
		}
	}
	y.mem.FailAfter(-1)
	y.faulty.Inject(nil)
	return true
}

func (y *yard) retention() eventlog.Retention {
	if y.rnd.IntN(3) == 0 {
		return eventlog.Retention{Bytes: y.keepBytes}
	}
	return eventlog.Retention{}
}

func (y *yard) expectFault(err error) {
	if !errors.Is(err, vfs.ErrPowerLost) && !errors.Is(err, syscall.EIO) {
		y.t.Errorf("seed %d: %v", y.seed, err)
	}
}

// injectFaults makes some syncs and writes of this life fail.
func (y *yard) injectFaults() {
	if y.rnd.IntN(3) == 0 {
		y.mem.SetCapacity(y.keepBytes/2 + y.rnd.Int64N(y.keepBytes*3/2))
	} else {
		y.mem.SetCapacity(0)
	}
	if y.rnd.IntN(3) == 0 {
		y.failAtRandom(3, 12)
	}
}

// failAtRandom makes one in so many operations fail.
func (y *yard) failAtRandom(stream uint64, one int) {
	faults := rand.New(rand.NewPCG(y.seed, stream))
	kinds := []vfs.OpKind{
		vfs.OpSync, vfs.OpWrite, vfs.OpSyncDir, vfs.OpCreate, vfs.OpTruncate, vfs.OpRemove, vfs.OpRename,
		vfs.OpRead, vfs.OpOpen, vfs.OpList,
	}
	y.faulty.Inject(func(op vfs.Op) error {
		if slices.Contains(kinds, op.Kind) && faults.IntN(one) == 0 {
			return syscall.EIO
		}
		return nil
	})
}

// step does one of the things that happen to a partition.
func (y *yard) step(m *model) {
	switch n := y.rnd.IntN(20); {
	case n < 14:
		y.append(m)
	case n < 17:
		y.read(m)
	case n < 18 && len(m.stored) > 0:
		b := m.stored[y.rnd.IntN(len(m.stored))]
		m.trimmed = max(m.trimmed, b.first)
		_ = m.p.Trim(y.t.Context(), b.first)
	case n < 19 && y.rnd.IntN(6) == 0: // all there is may go
		m.trimmed = max(m.trimmed, m.next())
		_ = m.p.Trim(y.t.Context(), m.next())
	case n < 19:
		_ = m.p.Trim(y.t.Context(), 0) // a round of retention
	default:
		y.mem.SetCapacity(0)
	}
}

// append submits some batches, one by one or together, and then waits for them.
func (y *yard) append(m *model) {
	var under []batch
	var receipts []eventlog.Receipt
	together := y.rnd.IntN(3) == 0
	var all []eventlog.Batch
	for range 1 + y.rnd.IntN(4) {
		b := y.newBatch()
		if together {
			under, all = append(under, b), append(all, b.encode())
			continue
		}
		r, err := m.p.Submit(y.t.Context(), b.encode())
		if err != nil {
			m.bury(b)
			continue
		}
		under, receipts = append(under, b), append(receipts, r)
	}
	if together {
		var err error
		if receipts, err = m.p.SubmitAll(y.t.Context(), all); err != nil {
			for _, b := range under {
				m.bury(b)
			}
			return
		}
	}
	for i, b := range under {
		done, err := receipts[i].Wait(y.t.Context())
		b.first = done.First
		switch {
		case err == nil:
			m.store(y, b)
		case errors.Is(err, eventlog.ErrUncertain):
			m.doubt(b)
		default:
			m.bury(b)
		}
	}
}

// newBatch is one that was never sent.
func (y *yard) newBatch() batch {
	y.nextID++
	b := batch{id: y.nextID, count: 1 + y.rnd.IntN(5)}
	if y.alike {
		b = batch{id: y.nextID | alike, count: 2}
	}
	if y.large && y.rnd.IntN(4) == 0 {
		b.id = y.nextID | large
	}
	if y.rnd.IntN(2) < y.frames {
		b.id |= framed
	}
	return b
}

func (m *model) store(y *yard, b batch) {
	if want := m.next(); b.first != want {
		y.t.Errorf("seed %d: %v: stored at %d, want %d", y.seed, m.id, b.first, want)
	}
	m.stored = append(m.stored, b)
}

func (m *model) next() eventlog.Sequence {
	if len(m.stored) == 0 {
		return 0
	}
	last := m.stored[len(m.stored)-1]
	return last.first + eventlog.Sequence(last.count)
}

func (m *model) doubt(b batch) {
	if m.doubtful == nil {
		m.doubtful = map[uint64]batch{}
	}
	m.doubtful[b.id] = b
}

func (m *model) bury(b batch) {
	if m.dead == nil {
		m.dead = map[uint64]bool{}
	}
	m.dead[b.id] = true
}

// pullThePlug ends this life: power loss, the end of the process, or a clean stop.
func (y *yard) pullThePlug() {
	switch y.rnd.IntN(4) {
	case 0:
		y.mem.FailAfter(-1)
		y.mem.SetCapacity(0)
		y.faulty.Inject(nil)
		y.engine.Close()
	case 1:
		y.mem = y.mem.CrashProcess()
	default:
		y.cutPower()
	}
	y.mem.FailAfter(-1)
	y.mem.SetCapacity(0)
	y.mem.SetRand(rand.New(rand.NewPCG(y.seed, y.nextID)))
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func (y *yard) cutPower() {
	y.lossy = y.lossy || y.mode != disk.Always
	y.mem = y.mem.CutPower(y.rnd)
}

// read checks what readers see while the engine runs: exactly what was acknowledged.
func (y *yard) read(m *model) {
	found, err := y.contents(m)
	if err != nil {
		return // the power may be gone, or a read refused
	}
	y.compare(m, found)
}

// reconcile checks what is found after a restart, and settles what was in doubt.
func (y *yard) reconcile(m *model) {
	found, err := y.contents(m)
	if err != nil {
		y.t.Errorf("seed %d: %v: read after restart: %v", y.seed, m.id, err)
		return
	}
	for _, b := range found {
		if d, ok := m.doubtful[b.id]; ok {
			delete(m.doubtful, b.id)
			d.first = b.first
			m.insert(d)
		}
	}
	for _, d := range m.doubtful {
		m.bury(d)
	}
	m.doubtful = nil
	y.compare(m, found)
}

// afterLoss is all that can be asked of a mode that does not promise to survive power
// loss: what can be read is what was sent, and damage is said, not guessed over.
func (y *yard) afterLoss() {
	y.faulty.Inject(nil)
	engine, err := disk.Open(config(y.mode, y.mem))
	testkit.Must(y.t, err, "seed %d", y.seed)
	defer engine.Close()
	for _, m := range y.parts {
		m.p, err = engine.Partition(m.id)
		testkit.Must(y.t, err, "seed %d", y.seed)
		_, err := y.contents(m)
		var damage *eventlog.CorruptError
		if err != nil && !errors.As(err, &damage) {
			y.t.Errorf("seed %d, %v: %v: read after power loss: %v", y.seed, y.mode, m.id, err)
		}
		y.goesOn(m)
	}
}

// goesOn appends to a partition, if it can be opened, and reads it back.
func (y *yard) goesOn(m *model) {
	if _, err := m.p.Bounds(y.t.Context()); err != nil {
		return
	}
	done, err := eventlog.Append(y.t.Context(), m.p, text("after"))
	if err != nil {
		y.t.Errorf("seed %d, %v: %v: append after power loss: %v", y.seed, y.mode, m.id, err)
		return
	}
	if got, err := readFrom(y.t, m.p, eventlog.At(done.First)); err != nil || len(got) != 1 || got[0] != "after" {
		y.t.Errorf("seed %d, %v: %v: after power loss %d reads back as %q, %v", y.seed, y.mode, m.id, done.First, got, err)
	}
}

// useDoomed works with the log that is to be removed, or removes it.
func (y *yard) useDoomed() {
	if y.doomed == nil {
		y.logs++
		y.doomed = &model{id: eventlog.PartitionID{Log: fmt.Sprintf("doomed-%d", y.logs)}}
		y.openDoomed()
	}
	switch {
	case y.doomed.halfRemoved || y.rnd.IntN(3) == 0:
		y.removeDoomed()
	default:
		y.append(y.doomed)
		y.read(y.doomed)
	}
}

func (y *yard) openDoomed() {
	var err error
	if y.doomed.p, err = y.engine.Partition(y.doomed.id); err != nil {
		y.t.Errorf("seed %d: %v: %v", y.seed, y.doomed.id, err)
	}
}

func (y *yard) removeDoomed() {
	if y.engine.Remove(y.t.Context(), y.doomed.id.Log) != nil {
		y.doomed.halfRemoved = true
		return
	}
	y.removed = append(y.removed, y.doomed.id.Log)
	y.doomed = nil
}

// reconcileDoomed wants the doomed log to be as any other, unless its removal has begun:
// then that is done again. No log is there that was removed.
func (y *yard) reconcileDoomed() {
	y.wantRemoved()
	if y.doomed == nil {
		return
	}
	if y.doomed.halfRemoved {
		y.removeDoomed()
		y.wantRemoved()
		return
	}
	y.openDoomed()
	y.reconcile(y.doomed)
}

func (y *yard) wantRemoved() {
	entries, err := y.mem.List("log")
	if err != nil && len(y.removed) > 0 {
		y.t.Errorf("seed %d: %v", y.seed, err)
	}
	for _, entry := range entries {
		if slices.Contains(y.removed, entry.Name) {
			y.t.Errorf("seed %d: %s was removed and is there", y.seed, entry.Name)
		}
	}
}

// insert puts a batch that was in doubt in its place: behind everything else.
func (m *model) insert(b batch) { m.stored = append(m.stored, b) }

// compare wants found to be what is stored, less a beginning that was to go.
func (y *yard) compare(m *model, found []batch) {
	for _, b := range found {
		if m.dead[b.id] {
			y.t.Errorf("seed %d: %v: batch %d at %d was refused and is there", y.seed, m.id, b.id, b.first)
			return
		}
	}
	gone := m.before(found)
	if len(found) != len(m.stored)-gone {
		y.t.Errorf("seed %d: %v: %d batches found, but %d of %d are to be there", y.seed, m.id, len(found), len(m.stored)-gone, len(m.stored))
		return
	}
	for i, b := range found {
		if b != m.stored[gone+i] {
			y.t.Errorf("seed %d: %v: found %+v where %+v was acknowledged", y.seed, m.id, b, m.stored[gone+i])
			return
		}
	}
	y.checkGone(m, m.stored[:gone])
}

// before counts the batches that were stored before the first one found.
func (m *model) before(found []batch) int {
	for i, b := range m.stored {
		if len(found) > 0 && b.first >= found[0].first {
			return i
		}
	}
	return len(m.stored)
}

// checkGone wants nothing to be missing that neither Trim nor retention by size removed.
func (y *yard) checkGone(m *model, gone []batch) {
	bounds, err := m.p.Bounds(y.t.Context())
	if err != nil || len(gone) == 0 {
		return
	}
	last := gone[len(gone)-1]
	next := last.first + eventlog.Sequence(last.count)
	if next != bounds.First {
		y.t.Errorf("seed %d: %v: the first event is %d, but %d are missing", y.seed, m.id, bounds.First, next)
	}
	kept := 0
	for _, b := range m.stored[len(gone):] {
		kept += b.encode().Bytes()
	}
	if next > m.trimmed && kept < int(y.keepBytes/2) {
		y.t.Errorf("seed %d: %v: events up to %d are missing, though only %d bytes are kept", y.seed, m.id, next-1, kept)
	}
}

// contents reads the whole partition as batches, checking bodies and numbering.
func (y *yard) contents(m *model) ([]batch, error) {
	c, err := m.p.Cursor(y.t.Context(), eventlog.Earliest())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var found []batch
	for next := c.At(); ; {
		run, err := c.TryNext(y.t.Context())
		if err != nil || run.Len() == 0 {
			return found, err
		}
		testkit.Equal(y.t, run.First, next, "seed %d: %v: event: follows %d", y.seed, m.id, next-1)
		next = run.Next()
		if run.Form != eventlog.FormEvents {
			found = append(found, y.frame(m, run))
			continue
		}
		b := batch{id: binary.LittleEndian.Uint64(run.Events[0].Message), first: run.First, count: len(run.Events)}
		for i, e := range b.encode().Events {
			if i >= len(run.Events) || !bytes.Equal(e.Message, run.Events[i].Message) || !bytes.Equal(e.Key, run.Events[i].Key) {
				y.t.Errorf("seed %d: %v: event %d of batch %d has another body", y.seed, m.id, i, b.id)
			}
		}
		found = append(found, b)
	}
}

// frame checks the body of a frame, and that it knows its place.
func (y *yard) frame(m *model, run eventlog.Run) batch {
	text, err := logtest.OpaqueText(run)
	if err != nil || len(text) < 8 {
		y.t.Errorf("seed %d: %v: at %d: %q, %v", y.seed, m.id, run.First, text, err)
		return batch{}
	}
	b := batch{id: binary.LittleEndian.Uint64([]byte(text)), first: run.First, count: run.Count}
	if want := string(b.encode().Raw[len(run.Raw)-len(text):]); text != want || run.Skip > 0 {
		y.t.Errorf("seed %d: %v: frame %d has another body, or lacks %d events", y.seed, m.id, b.id, run.Skip)
	}
	return b
}

// encode makes a batch whose bodies depend on its id, its count and nothing else.
func (b batch) encode() eventlog.Batch {
	rnd := rand.New(rand.NewPCG(b.id, 9))
	var out eventlog.Batch
	for i := range b.count {
		message := binary.LittleEndian.AppendUint64(nil, b.id)
		message = append(message, byte(i), byte(b.count))
		words := rnd.IntN(100)
		if b.id&alike != 0 {
			words = 70
		}
		if b.id&large != 0 {
			words = 1 + (64<<10)/8/b.count + rnd.IntN(1000)
		}
		for range words {
			message = binary.LittleEndian.AppendUint64(message, rnd.Uint64())
		}
		out.Events = append(out.Events, eventlog.Event{Key: fmt.Append(nil, b.id%7), Message: message})
	}
	if b.id&framed == 0 {
		return out
	}
	var text []byte
	for _, e := range out.Events {
		text = append(text, e.Message...)
	}
	return logtest.Opaque(b.count, string(text))
}

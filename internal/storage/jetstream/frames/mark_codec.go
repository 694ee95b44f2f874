package frames

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// The least that a partition and a writer take in a mark. A decoder makes room for no more of them
// than the bytes can hold.
const (
	leastPartition = 11
	leastWriter    = 12
)

// AppendMark appends a mark frame: of h it takes writer and time. The mark's partitions are in
// order, as NewMarks gives them.
func AppendMark(dst []byte, h Header, m Mark) []byte {
	start := len(dst)
	dst = reserve(dst)
	h = Header{Kind: KindMark, Writer: h.Writer, Time: h.Time, Base: Base{Seq: m.AsOf}, Batches: len(m.Partitions)}
	dst = binary.AppendUvarint(dst, uint64(m.Part))
	dst = binary.AppendUvarint(dst, uint64(m.Parts))
	before := ""
	for i := range m.Partitions {
		dst = appendPartition(dst, before, &m.Partitions[i])
		before = m.Partitions[i].Name
	}
	return finish(dst, start, h)
}

// appendPartition writes a name as what differs from the one before, since most have a beginning in
// common.
func appendPartition(dst []byte, before string, p *PartitionState) []byte {
	common := 0
	for common < min(len(before), len(p.Name)) && before[common] == p.Name[common] {
		common++
	}
	dst = append(dst, byte(common), byte(len(p.Name)-common))
	dst = append(dst, p.Name[common:]...)
	dst = binary.AppendUvarint(dst, uint64(p.Next))
	dst = binary.AppendUvarint(dst, 0) // Next-Stable: transactions that are open
	dst = binary.AppendUvarint(dst, uint64(p.Time))
	dst = binary.AppendUvarint(dst, uint64(p.Bytes))
	dst = binary.AppendUvarint(dst, uint64(p.Head.First))
	dst = binary.AppendUvarint(dst, uint64(p.Head.Seq))
	dst = binary.AppendUvarint(dst, uint64(p.Head.Bytes))
	dst = binary.AppendUvarint(dst, uint64(len(p.Writers)))
	for i := range p.Writers {
		dst = appendWriter(dst, &p.Writers[i], p.Time)
	}
	return dst
}

func appendWriter(dst []byte, w *WriterState, now int64) []byte {
	flags := byte(0)
	if w.Writer.Producer {
		flags = flagProducer
	}
	dst = append(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, w.Writer.ID)
	dst = binary.AppendUvarint(dst, uint64(w.Epoch))
	dst = binary.AppendUvarint(dst, w.Q)
	return binary.AppendVarint(dst, now-w.Used)
}

// DecodeMark reads a mark. It copies what it needs: the mark outlives the message. Errors:
// ErrMalformed; ErrVersion for what is no mark, or has transactions that are open.
func DecodeMark(f Frame) (Mark, error) {
	if f.Kind != KindMark {
		return Mark{}, ErrVersion
	}
	d := markDecoder{rest: f.payload}
	m := Mark{AsOf: f.Base.Seq, Part: int(d.number(1<<20 - 1)), Parts: int(d.number(1 << 20))}
	if m.Part >= m.Parts || f.Batches > len(d.rest)/leastPartition {
		return Mark{}, ErrMalformed
	}
	m.Partitions = make([]PartitionState, 0, f.Batches)
	before := ""
	for range f.Batches {
		p := d.partition(before, m.AsOf)
		if d.err != nil {
			return Mark{}, d.err
		}
		m.Partitions = append(m.Partitions, p)
		before = p.Name
	}
	if len(d.rest) > 0 {
		return Mark{}, ErrMalformed
	}
	return m, nil
}

// markDecoder reads on until something is wrong; from then on all is zero.
type markDecoder struct {
	rest []byte
	err  error
}

func (d *markDecoder) fail(err error) {
	if d.err == nil {
		d.rest, d.err = nil, err
	}
}

// number reads one that is at most so large.
func (d *markDecoder) number(most uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > most {
		d.fail(ErrMalformed)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *markDecoder) signed() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 || v > maxTime || v < -maxTime {
		d.fail(ErrMalformed)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *markDecoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.fail(ErrMalformed)
		return make([]byte, n)
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *markDecoder) partition(before string, asOf StreamSeq) PartitionState {
	lengths := d.bytes(2)
	common, rest := int(lengths[0]), d.bytes(int(lengths[1]))
	if common > len(before) || common+len(rest) > MaxNameBytes {
		d.fail(ErrMalformed)
		return PartitionState{}
	}
	p := PartitionState{Name: before[:common] + string(rest)}
	p.Next = eventlog.Sequence(d.number(maxNumber))
	open := d.number(maxNumber)
	p.Time = int64(d.number(maxTime))
	p.Bytes = int64(d.number(maxNumber))
	p.Head = Head{First: eventlog.Sequence(d.number(uint64(p.Next))), Seq: StreamSeq(d.number(uint64(asOf))), Bytes: int64(d.number(uint64(p.Bytes)))}
	switch {
	case open != 0:
		d.fail(ErrVersion)
	case p.Name <= before:
		d.fail(ErrMalformed)
	default:
		p.Writers = d.writers(p.Time)
	}
	return p
}

func (d *markDecoder) writers(now int64) []WriterState {
	n := d.number(uint64(len(d.rest) / leastWriter))
	all := make([]WriterState, 0, n)
	for range n {
		head := d.bytes(9)
		w := WriterState{
			Writer: WriterID{ID: binary.LittleEndian.Uint64(head[1:]), Producer: head[0] == flagProducer},
			Epoch:  Epoch(d.number(1<<64 - 1)),
			Q:      d.number(1<<64 - 1),
			Used:   now - d.signed(),
		}
		behind := len(all) == 0 || all[len(all)-1].Writer.compare(w.Writer) < 0
		if head[0] > flagProducer || !behind || w.Used < 0 || w.Used > maxTime {
			d.fail(ErrMalformed)
		}
		if d.err != nil {
			return nil
		}
		all = append(all, w)
	}
	return all
}

// NewMarks gives the parts of a mark whose payloads measure at most so many bytes each, or have one
// partition only. It puts the states into order. A stream without partitions has a mark, too.
func NewMarks(asOf StreamSeq, states []PartitionState, partBytes int) []Mark {
	slices.SortFunc(states, func(a, b PartitionState) int { return strings.Compare(a.Name, b.Name) })
	var parts []Mark
	for first, size := 0, 0; first < len(states) || len(parts) == 0; size = 0 {
		end := first
		for end < len(states) && (end == first || size+states[end].most() <= partBytes) {
			size += states[end].most()
			end++
		}
		parts = append(parts, Mark{AsOf: asOf, Part: len(parts), Partitions: states[first:end:end]})
		first = end
	}
	for i := range parts {
		parts[i].Parts = len(parts)
	}
	return parts
}

// most is a bound of what the partition takes in a mark.
func (p *PartitionState) most() int {
	return 2 + len(p.Name) + 8*binary.MaxVarintLen64 + len(p.Writers)*(9+3*binary.MaxVarintLen64)
}

// JoinMarks makes one mark of the parts that one writer has written, in any order. It is false while
// some are missing.
func JoinMarks(parts []Mark) (Mark, bool) {
	if len(parts) == 0 || len(parts) != parts[0].Parts {
		return Mark{}, false
	}
	whole := Mark{AsOf: parts[0].AsOf, Parts: 1}
	seen := make([]bool, len(parts))
	for _, p := range parts {
		if p.AsOf != whole.AsOf || p.Parts != len(parts) || p.Part >= len(parts) || seen[p.Part] {
			return Mark{}, false
		}
		seen[p.Part] = true
		whole.Partitions = append(whole.Partitions, p.Partitions...)
	}
	slices.SortFunc(whole.Partitions, func(a, b PartitionState) int { return strings.Compare(a.Name, b.Name) })
	return whole, true
}

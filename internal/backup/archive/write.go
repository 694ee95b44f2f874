package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
)

// Writer writes an archive: Begin, then what belongs to the item, then End, for each; Finish at last. It
// is used by one goroutine. After an error nothing more is written.
type Writer struct {
	out    *bufio.Writer
	offset int64 // of what was written
	buf    []byte
	err    error

	item *Item // under way; nil: none
	sum  hash.Hash
	list []Item
}

// NewWriter begins an archive.
func NewWriter(out io.Writer, head Head) (*Writer, error) {
	w := &Writer{out: bufio.NewWriterSize(out, 64<<10), sum: sha256.New()}
	head.Format = Format
	_, w.err = w.out.WriteString(magic)
	w.offset = int64(len(magic))
	w.json(kindHead, head)
	return w, w.err
}

// Begin starts an item.
func (w *Writer) Begin(item Item) error {
	w.item = &item
	w.sum.Reset()
	w.json(kindBegin, item)
	return w.err
}

// Entry writes one of the entries.
func (w *Writer) Entry(e meta.Entry) error {
	w.content(kindEntry, func(to []byte) []byte { return appendEntry(to, e) })
	w.item.Count++
	w.item.Revision = max(w.item.Revision, uint64(e.Revision))
	if id, ok := sealed.KeyOf(e.Value); ok && !slices.Contains(w.item.Keys, id) {
		w.item.Keys = append(w.item.Keys, id)
	}
	return w.err
}

// Run writes a run of the partition.
func (w *Writer) Run(run eventlog.Run) error {
	w.content(kindRun, func(to []byte) []byte { return AppendRun(to, run) })
	w.item.Count += int64(run.Len())
	return w.err
}

// Write writes some of a body or a file.
func (w *Writer) Write(p []byte) (n int, err error) {
	for piece := range slices.Chunk(p, pieceBytes) {
		w.content(kindPiece, func(to []byte) []byte { return append(to, piece...) })
	}
	return len(p), w.err
}

// End completes the item, which change fills in; nil means that there is nothing to.
func (w *Writer) End(change func(*Item)) error {
	if change != nil {
		change(w.item)
	}
	w.item.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	if err := w.item.check(); err != nil && w.err == nil {
		w.err = err
	}
	w.json(kindEnd, w.item)
	w.list = append(w.list, *w.item)
	w.item = nil
	return w.err
}

// Items are those that were completed.
func (w *Writer) Items() []Item { return w.list }

// Finish writes the list and the end. Before it has returned there is no backup.
func (w *Writer) Finish() error {
	begin := w.offset
	for rest := w.list; len(rest) > 0 && w.err == nil; {
		n, bytes := 0, 0
		for n < len(rest) && bytes < listBytes {
			text, err := json.Marshal(rest[n])
			if err != nil {
				return err
			}
			bytes += len(text)
			n++
		}
		w.json(kindList, rest[:n])
		rest = rest[n:]
	}
	if w.err == nil {
		w.err = w.out.WriteByte(kindFooter)
	}
	if w.err == nil {
		_, w.err = w.out.Write(appendFooter(nil, begin))
	}
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.err
}

// Fail says, where the list would be, why there is none. The archive is good for nothing then.
func (w *Writer) Fail(reason string) error {
	w.json(kindFailure, failure{reason})
	return errors.Join(w.err, w.out.Flush())
}

type failure struct {
	Reason string `json:"reason"`
}

func (w *Writer) json(kind byte, value any) {
	text, err := json.Marshal(value)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.record(kind, func(to []byte) []byte { return append(to, text...) })
}

func (w *Writer) content(kind byte, fill func([]byte) []byte) {
	payload := w.record(kind, fill)
	w.sum.Write(payload)
	w.item.Bytes += int64(len(payload))
}

// record writes one, and gives its payload until the next.
func (w *Writer) record(kind byte, fill func([]byte) []byte) (payload []byte) {
	if cap(w.buf) > 2*pieceBytes { // what a huge batch needed is not kept
		w.buf = nil
	}
	w.buf = fill(append(w.buf[:0], kind, 0, 0, 0, 0))
	payload = w.buf[headBytes:]
	if len(payload) > maxPayload && w.err == nil {
		w.err = fmt.Errorf("a record of %d bytes is larger than any reader takes", len(payload))
	}
	binary.BigEndian.PutUint32(w.buf[1:], uint32(len(payload)))
	if w.err == nil {
		_, w.err = w.out.Write(w.buf)
	}
	if w.err == nil {
		_, w.err = w.out.Write(binary.BigEndian.AppendUint32(nil, crc32.Checksum(w.buf, castagnoli)))
	}
	w.offset += int64(len(w.buf) + sumBytes)
	return payload
}

func appendFooter(to []byte, list int64) []byte {
	to = binary.BigEndian.AppendUint64(to, uint64(list))
	to = binary.BigEndian.AppendUint32(to, crc32.Checksum(to[len(to)-8:], castagnoli))
	return append(to, footerMagic...)
}

// parseFooter gives where the list begins.
func parseFooter(b []byte) (list int64, ok bool) {
	if len(b) != footerBytes || string(b[12:]) != footerMagic || crc32.Checksum(b[:8], castagnoli) != binary.BigEndian.Uint32(b[8:]) {
		return 0, false
	}
	list = int64(binary.BigEndian.Uint64(b))
	return list, list >= 0
}

package record

import (
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Translators are those of the forms that Kafka's batches are stored in, for readers of single events.
func Translators() eventlog.Translators {
	return eventlog.Translators{eventlog.FormKafka: Translate}
}

// Translate gives a frame's records as single events; see eventlog.Translate.
func Translate(to []eventlog.Event, buf []byte, frame eventlog.Run, maxBytes int) ([]eventlog.Event, []byte, error) {
	h, err := ReadHead(frame.Raw)
	if err != nil {
		return to, buf, err
	}
	if int(h.Count) != frame.Count {
		return to, buf, fmt.Errorf("%w: %d records, where %d were stored", ErrInvalid, h.Count, frame.Count)
	}
	given, created := 0, h.Attributes&AppendTime == 0
	err = h.part(open, frame.Raw, frame.Skip, func(r *Record) bool {
		at := len(buf)
		buf = appendSections(buf, r, created)
		bytes := eventlog.EventOverheadBytes + len(buf) - at
		if given += bytes; given > maxBytes && given > bytes {
			buf = buf[:at]
			return false
		}
		to = append(to, eventlog.Event{Message: buf[at:len(buf):len(buf)]})
		return true
	})
	return to, buf, err
}

// AppendRun appends a run of single events as one uncompressed batch, which Kafka's clients read. What cannot
// be read of them any more keeps its offset, without key, value and headers; unread says how many these are.
func AppendRun(dst []byte, run eventlog.Run) (batch []byte, unread int) {
	var (
		ms = run.Time.UnixMilli()
		b  = Begin(dst, int64(run.First), ms)
		m  mapping
	)
	for i := range run.Events {
		r, err := m.of(&run.Events[i], ms)
		if err != nil {
			r, unread = &Record{Timestamp: ms, Value: []byte{}}, unread+1
		}
		b.Add(r)
	}
	return b.End(), unread
}

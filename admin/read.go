package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/url"
	"strconv"
	"strings"
)

// Query says what to read of a hub.
type Query struct {
	Hub string
	// From is a position as the API takes it; empty means earliest.
	From string
	// Group is the consumer group; empty means $Default.
	Group string
	// Partitions to read; nil means all.
	Partitions []string
	// Count ends the reading after so many events; zero means no end.
	Count int
	// Bodies is how each event is given: base64, every body byte for byte; cloudevents, as subscriptions of the
	// hub see it, in cloudEvent; empty, JSON bodies as JSON.
	Bodies string
}

func (q Query) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"from": q.From, "group": q.Group, "partition": strings.Join(q.Partitions, ","), "bodies": q.Bodies,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Count > 0 {
		v.Set("count", strconv.Itoa(q.Count))
	}
	return v
}

// maxLineBytes bounds one event as JSON; the largest that a log can hold fits.
const maxLineBytes = 64 << 20

// Read gives every event from the start up to the ends as they are now, partition after
// partition, each as one JSON object. An answer that breaks off, as it does where the
// consumer paused for longer than a yard waits, is asked for again behind the last
// event that was given. Damaged events are left out: notice, if not nil, hears of each
// stretch of them, and an error comes at the end. It stops after an error.
func (c *Client) Read(ctx context.Context, q Query, notice func(Notice)) iter.Seq2[json.RawMessage, error] {
	if notice == nil {
		notice = func(Notice) {}
	}
	return func(yield func(json.RawMessage, error) bool) {
		r := &reading{client: c, query: q, left: q.Count, yield: yield, notice: notice}
		if err := r.run(ctx); err != nil && !errors.Is(err, errLeft) {
			yield(nil, named(q.Hub, err))
		}
	}
}

var errLineTooLong = errors.New("the yard sent a line that is too long")

// readLine gives the next line without its end. io.EOF comes only where a line would
// begin; half a line is io.ErrUnexpectedEOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull) && len(line) < maxLineBytes:
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, errLineTooLong
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

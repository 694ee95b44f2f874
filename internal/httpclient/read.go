package httpclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
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
}

func (q Query) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"from": q.From, "group": q.Group, "partition": strings.Join(q.Partitions, ","),
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

// Read gives every event from the start up to the ends as they are now, each as one
// JSON object. It stops after an error.
func (c *Client) Read(ctx context.Context, q Query) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		response, err := c.do(ctx, request{
			method: http.MethodGet, path: []string{"hubs", q.Hub, "events"}, query: q.values(),
			header: http.Header{"Accept": {"application/x-ndjson"}},
		})
		if err != nil {
			yield(nil, err)
			return
		}
		defer response.Body.Close()
		lines := bufio.NewReaderSize(response.Body, 64<<10)
		for {
			line, err := readLine(lines)
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				err = c.unreachable(err)
			default:
				err = brokenOff(line)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// brokenOff finds the line with which the yard ends an answer that it cannot finish.
func brokenOff(line []byte) error {
	if !bytes.HasPrefix(line, []byte(`{"problem":`)) {
		return nil
	}
	var end struct {
		Problem *Problem `json:"problem"`
	}
	if err := json.Unmarshal(line, &end); err != nil || end.Problem == nil {
		return nil
	}
	return end.Problem
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

package v1

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// maxFindBytes is how long a text to be found may be.
const maxFindBytes = 1024

// finder is a search through the events of a page: for a text, in any case, or by one condition as
// subscriptions have them. It belongs to one request.
type finder struct {
	text      []byte         // in lower case; nil: there is a condition
	condition *filter.Filter // of events as subscriptions of the hub see them
	namespace string

	looked, bytes int
	until         time.Time
	end           bool // there is nothing more to look at

	folded, stored []byte // room
	envelope       schema.Envelope
}

// newFinder reads what is to be found; nil: nothing is.
func newFinder(query url.Values, namespace string, now time.Time) (*finder, error) {
	text := query.Get("find")
	switch {
	case text == "":
		return nil, nil
	case len(text) > maxFindBytes:
		return nil, badRequest("look for a part of it", "a text of %d bytes is too long to be looked for", len(text))
	case query.Get("wait") != "":
		return nil, badRequest("leave wait out", "a search does not wait for events")
	}
	f := &finder{namespace: namespace, until: now.Add(maxLookTime)}
	if inner, ok := quoted(text); ok {
		f.text = bytes.ToLower([]byte(inner))
		return f, nil
	}
	condition, err := filter.ParseCondition(text)
	switch {
	case err != nil && filter.Meant(text):
		return nil, badRequest("write KEY OPERATOR VALUES with one of "+filter.Operators()+"; or look for it as a text, in double quotes",
			"find: %s", strings.TrimPrefix(err.Error(), filter.ErrInvalid.Error()+": "))
	case err != nil: // then it is a text
		f.text = bytes.ToLower([]byte(text))
		return f, nil
	}
	f.condition, err = filter.Compile(filter.Config{Arrays: true, Advanced: []filter.Condition{condition}})
	if err != nil {
		return nil, fmt.Errorf("find: %w", err)
	}
	return f, nil
}

// quoted is the text in double quotes that would else be a condition, or was meant to be one. Other texts may have
// quotes of their own.
func quoted(text string) (inner string, ok bool) {
	inner, begins := strings.CutPrefix(text, `"`)
	inner, ends := strings.CutSuffix(inner, `"`)
	if !begins || !ends {
		return "", false
	}
	_, err := filter.ParseCondition(inner)
	return inner, err == nil || filter.Meant(inner)
}

// over: enough was looked at for one request.
func (f *finder) over() bool {
	return f != nil && (f.looked >= maxLooked || f.bytes >= maxLookedBytes || !time.Now().Before(f.until))
}

// finds looks at event i of a run.
func (f *finder) finds(hub, partition string, run eventlog.Run, i int) bool {
	stored := &run.Events[i]
	f.looked++
	f.bytes += len(stored.Message) + len(stored.Key)
	if f.condition == nil {
		return f.has(stored.Key) || f.has(stored.Message)
	}
	ev, err := message.Decode(stored.Message)
	if err != nil {
		return false
	}
	f.stored, err = schema.FromHub(f.stored[:0], schema.HubEvent{
		Namespace: f.namespace, Hub: hub, Partition: partition, Sequence: int64(run.First) + int64(i), Enqueued: run.Time, Key: string(stored.Key), Event: ev,
	})
	return err == nil && f.envelope.Scan(schema.CloudEventForm, f.stored) == nil && f.condition.Match(&f.envelope)
}

// has looks for the text: what is stored has all texts of an event as they are.
func (f *finder) has(b []byte) bool {
	f.folded = append(f.folded[:0], b...)
	for i, c := range f.folded {
		if 'A' <= c && c <= 'Z' {
			f.folded[i] = c + 'a' - 'A'
		}
	}
	return bytes.Contains(f.folded, f.text)
}

// appendLooked says how far the search came.
func (f *finder) appendLooked(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `,"looked":`...), int64(f.looked), 10)
	return strconv.AppendBool(append(dst, `,"end":`...), f.end)
}

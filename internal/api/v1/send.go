package v1

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// sendEvents stores the events of one request, whole or not at all, in one partition.
// 201 means that they are as durable as the engine promises.
func (d *Handler) sendEvents(w http.ResponseWriter, r *http.Request) (err error) {
	send := send{outbox: d.newOutbox(r, r.PathValue("hub"))}
	defer func() { send.outbox.end(err) }()
	if err := send.read(r); err != nil {
		return err
	}
	to, err := send.outbox.target(send.partition, send.key)
	if err != nil {
		return err
	}
	stored, err := d.publish(r, r.PathValue("hub"), to, send.outbox.events)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, admin.Sent{
		Partition: stored.Partition, First: int64(stored.First), Count: stored.Count, Enqueued: admin.Time{Time: stored.Time},
	})
}

// publish stores events in the hub that the request may send to now that its body has been
// read, however long that took, and in none that has taken its name.
func (d *Handler) publish(r *http.Request, hub string, to broker.Target, events []eventlog.Event) (broker.Published, error) {
	found, err := d.cfg.Broker.LookUp(r.Context(), hub)
	if err != nil {
		return broker.Published{}, err
	}
	if err := stillLetIn(r); err != nil {
		return broker.Published{}, err
	}
	to.Created, to.Quota = found.Created, d.cfg.Access.Quota(grantOf(r).Account())
	return d.cfg.Broker.Publish(r.Context(), hub, to, events)
}

// send is one request to store events, as far as it has been read.
type send struct {
	outbox    outbox
	key       string
	partition string
}

// read takes in the request. Events are encoded as they come, so that a body of many
// small events never stands in memory decoded. The body may be twice as large as what
// it stores, because JSON escapes and base64 take room.
func (s *send) read(r *http.Request) error {
	query := r.URL.Query()
	s.key, s.partition = query.Get("key"), query.Get("partition")

	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	opening, err := nextToken(dec)
	if err != nil {
		return err
	}
	switch opening {
	case json.Delim('['):
		err = s.readEvents(dec)
	case json.Delim('{'):
		err = s.readFields(dec)
	default:
		err = badRequest(sendHelp, "the body is neither an object nor an array")
	}
	if err != nil {
		return err
	}
	return endOfJSON(dec)
}

// nextToken is the decoder's, with its errors in words for the client.
func nextToken(dec *json.Decoder) (json.Token, error) {
	t, err := dec.Token()
	if errors.Is(err, io.EOF) && dec.InputOffset() > 0 {
		err = io.ErrUnexpectedEOF // it has begun
	}
	if err != nil {
		return nil, notJSON(err, sendNext)
	}
	return t, nil
}

const (
	sendHelp = `send {"events":[{"body":"hello"}]} or a bare array of events`
	sendNext = sendHelp + "; text, CSV and the like are the body of an event, as a string, or are sent as they are to POST /HUB/messages"
)

func (s *send) readFields(dec *json.Decoder) error {
	for dec.More() {
		name, err := nextToken(dec)
		if err != nil {
			return err
		}
		switch name {
		case "events":
			var opening json.Token
			if opening, err = nextToken(dec); err == nil && opening != json.Delim('[') {
				err = badRequest(sendHelp, "events is not an array")
			}
			if err == nil {
				err = s.readEvents(dec)
			}
		case "key":
			err = readOnce(dec, "key", &s.key)
		case "partition":
			err = readOnce(dec, "partition", &s.partition)
		default:
			field, _ := name.(string)
			err = unknownField(field, sendHelp+", with key or partition beside it", []string{"events", "key", "partition"})
		}
		if err != nil {
			return err
		}
	}
	_, err := nextToken(dec)
	return err
}

// readOnce reads a field that may also stand in the query; the two must not disagree.
func readOnce(dec *json.Decoder, name string, field *string) error {
	var given text
	if err := dec.Decode(&given); err != nil {
		return notJSON(err, sendNext)
	}
	value := string(given)
	if *field != "" && value != "" && *field != value {
		return badRequest("give it in one place only", "%s is both %q and %q", name, *field, value)
	}
	if value != "" {
		*field = value
	}
	return nil
}

// readEvents reads the events of an array whose opening has been read.
func (s *send) readEvents(dec *json.Decoder) error {
	for dec.More() {
		var given sentEvent
		if err := dec.Decode(&given); err != nil {
			return notJSON(err, sendNext, fieldNames(reflect.TypeFor[sentEvent]())...)
		}
		ev, err := given.event()
		if err != nil {
			return err
		}
		if err := s.outbox.add(ev); err != nil {
			return err
		}
	}
	_, err := nextToken(dec)
	return err
}

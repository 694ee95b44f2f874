package schema

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"strings"
	"time"
)

const (
	defaultMaxEvents     = 5000
	defaultMaxEventBytes = 1 << 20
)

// Publication is one publish request.
type Publication struct {
	// Kind, Mapping and TopicID are the topic's. TopicID is its resource id, which an
	// event may name as its topic; TopicName is allowed there too.
	Kind      Kind
	Mapping   Mapping
	TopicID   string
	TopicName string
	// Domain: it is a domain's, whose events say which of its topics they are for. TopicName is the
	// domain's name.
	Domain bool
	// Header is the request's: content type, ce-* attributes.
	Header http.Header
	Body   []byte
	// Now is when it came, for events without a time; NewID makes ids for those without
	// (nil: random ones).
	Now   time.Time
	NewID func() string
	// MaxEvents and MaxEventBytes bound it; zero: 5,000 and 1 MiB.
	MaxEvents     int
	MaxEventBytes int
	// CloudEventsOnly is the namespace publish call's rule: only CloudEvents content types.
	CloudEventsOnly bool
}

// Read gives the stored form of every event, or an *InputError for the whole. The slices may
// share the body's bytes. An empty array is no error: it has no events.
//
// Of a member of the envelope that stands twice it is not clear which is meant, so that such
// events are refused. What stands in data is nobody's business but the receiver's.
func Read(p Publication) ([][]byte, error) {
	p.MaxEvents = cmp.Or(p.MaxEvents, defaultMaxEvents)
	p.MaxEventBytes = cmp.Or(p.MaxEventBytes, defaultMaxEventBytes)
	if p.NewID == nil {
		p.NewID = rand.Text
	}
	shape, err := p.shape()
	if err != nil {
		return nil, err
	}
	if len(p.Body) == 0 {
		return nil, refuse("the body is empty: send the event in it")
	}
	if shape == shapeBinary {
		stored, err := p.readBinary()
		if err != nil {
			return nil, err
		}
		return [][]byte{stored}, nil
	}
	events, err := p.readEvents(shape)
	return events, inputError(err)
}

// shape is what the body of a publication is.
type shape int

const (
	shapeAny    shape = iota // an array, or a lone event
	shapeOne                 // one event
	shapeArray               // an array of events
	shapeBinary              // data, whose event is in the headers
)

// shape is what the body has to be by the content type (reference §3).
func (p *Publication) shape() (shape, error) {
	contentType := p.Header.Get("Content-Type")
	media := mediaType(contentType)
	if p.Kind == CloudEvents {
		return p.cloudEventShape(contentType, media)
	}
	if p.CloudEventsOnly || !isLooseJSON(media) {
		return 0, refuseContentType("the topic takes %s, and the content type is '%s': use %s, or a topic that takes what you send",
			p.Kind.InputName(), contentType, mediaJSON)
	}
	return shapeAny, nil
}

// isLooseJSON takes besides JSON what clients send that do not care, such as curl -d in Event
// Grid's own examples.
func isLooseJSON(media string) bool {
	switch media {
	case "", "application/x-www-form-urlencoded", "text/plain", "application/octet-stream":
		return true
	default:
		return isJSON(media) && !strings.HasPrefix(media, mediaCloudEvents)
	}
}

func (p *Publication) cloudEventShape(contentType, media string) (shape, error) {
	binary := hasBinaryAttributes(p.Header)
	switch {
	case binary && (media == mediaCloudEvent || media == mediaBatch):
		return 0, refuseHeader("the headers ce-* have the event's attributes, and by its content type %s so has the body: send one or the other", media)
	case media == mediaCloudEvent:
		return shapeOne, nil
	case media == mediaBatch:
		return shapeArray, nil
	case binary && media != "" && !strings.HasPrefix(media, mediaCloudEvents):
		return shapeBinary, nil
	case !binary && media == mediaJSON && !p.CloudEventsOnly:
		return shapeAny, nil
	default:
		return 0, refuseContentType("the topic takes %s, and the content type is '%s': use %s for one event, %s for an array, or the data's own with the attributes in headers ce-*",
			p.Kind.InputName(), contentType, mediaCloudEvent, mediaBatch)
	}
}

// readEvents reads a JSON body. Errors are refusals or the reader's.
func (p *Publication) readEvents(shape shape) ([][]byte, error) {
	s := store{p: p, r: reader{b: p.Body}, out: make([]byte, 0, len(p.Body))}
	s.r.space()
	var err error
	switch c := s.r.peek(); {
	case c == '[' && shape != shapeOne:
		err = s.array()
	case c == '[':
		err = refuse("the topic takes %s, and by its content type the body is one event; it begins an array: send it as %s", p.Kind.InputName(), mediaBatch)
	case c == '{' && shape != shapeArray:
		err = s.event()
	case shape == shapeOne:
		err = refuse("the topic takes %s: a JSON object is expected, which begins with '{'", p.Kind.InputName())
	default:
		err = refuse("the topic takes %s: a JSON array of events is expected, which begins with '['", p.Kind.InputName())
	}
	if err == nil {
		err = s.r.end()
	}
	if err != nil {
		return nil, err
	}
	events := make([][]byte, len(s.ends))
	start := 0
	for i, end := range s.ends {
		events[i] = s.out[start:end:end]
		start = end
	}
	return events, nil
}

// store gathers the stored forms of a publication's events in one buffer.
type store struct {
	p    *Publication
	r    reader
	out  []byte
	ends []int // where in out each event ends
	// draft is used again and again, for its extensions' sake.
	draft draft
}

func (s *store) array() error {
	if err := s.r.open('[', 0); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.r.more(']', first)
		if err != nil || !more {
			return err
		}
		if len(s.ends) == s.p.MaxEvents {
			return refuseSize("there are more than %d events: send fewer at once", s.p.MaxEvents)
		}
		if err := s.event(); err != nil {
			return atIndex(err, len(s.ends))
		}
	}
}

func (s *store) event() error {
	start := s.r.i
	if c := s.r.peek(); c != '{' && c != 0 {
		return refuse("the topic takes %s: a JSON object is expected, which begins with '{'", s.p.Kind.InputName())
	}
	var err error
	switch d := &s.draft; s.p.Kind {
	case CloudEvents:
		err = d.readCloudEvent(&s.r)
	case Custom:
		err = s.custom(d)
	default:
		if err = d.read(&s.r, EventGridForm, refuseUnknown); err == nil {
			err = s.checkEventGrid(d)
		}
	}
	if err == nil && s.p.Domain {
		err = s.p.address(&s.draft)
	}
	if err != nil {
		return err
	}
	s.out = s.draft.appendStored(s.out, s.p.Kind.Form())
	if n := s.r.i - start; n > s.p.MaxEventBytes {
		return refuseSize("the event has %d bytes, and may have %d: make it smaller", n, s.p.MaxEventBytes)
	}
	s.ends = append(s.ends, len(s.out))
	return nil
}

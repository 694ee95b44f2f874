package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// Headers as net/http spells them (reference §9).
const (
	headerEventType     = "Aeg-Event-Type"
	headerSubscription  = "Aeg-Subscription-Name"
	headerDeliveryCount = "Aeg-Delivery-Count"
	headerMetadata      = "Aeg-Metadata-Version"
	headerDataVersion   = "Aeg-Data-Version"
	headerOutputID      = "Aeg-Output-Event-Id"
	headerTraceParent   = "Traceparent"
	headerTraceState    = "Tracestate"
)

// maxValueBytes bounds the value of a delivery property (reference §16).
const maxValueBytes = 4096

// dynamic is a delivery property whose value is in the event.
type dynamic struct {
	name   string // as people wrote it
	header string // as net/http spells it
	field  string
}

// partitionKey is what a hub endpoint's property PartitionKey gives: a value, or a field.
type partitionKey struct{ value, field string }

// setHeaders makes what all requests have in common, and remembers what they have not.
func (c *Sender) setHeaders(o *Order) error {
	o.header = c.usual(o)
	name := strings.ToUpper(o.Subscription.Name)
	o.name = []string{name}
	if o.Subscription.Hub != "" {
		o.properties = map[string]any{
			"aeg-event-type":        "Notification",
			"aeg-subscription-name": name,
			"aeg-metadata-version":  o.header[headerMetadata][0],
		}
	}
	for _, h := range o.Subscription.Headers {
		if err := o.setHeader(h); err != nil {
			return err
		}
	}
	return nil
}

func (o *Order) setHeader(h topics.Header) error {
	switch {
	case strings.HasPrefix(strings.ToLower(h.Name), "aeg-"):
		return fmt.Errorf("header %q: names that begin with aeg- are the yard's own, choose another", h.Name)
	case !egress.Sendable(h.Name, h.Value):
		return fmt.Errorf("header %q cannot be sent: give a name of letters, digits and '-', and a value without line breaks", h.Name)
	case o.Subscription.Hub != "" && strings.EqualFold(h.Name, "PartitionKey"):
		o.key = partitionKey{h.Value, h.Field}
	case h.Field != "":
		o.dynamic = append(o.dynamic, dynamic{h.Name, textproto.CanonicalMIMEHeaderKey(h.Name), h.Field})
	case o.properties != nil:
		o.properties[h.Name] = h.Value
	default:
		if !o.own {
			o.header, o.own = maps.Clone(o.header), true
		}
		o.header.Set(h.Name, h.Value)
	}
	return nil
}

// usual gives the headers that orders of a kind have in common. There are a few kinds, and perhaps a hundred thousand
// orders: what they share is made once, and not changed.
func (c *Sender) usual(o *Order) http.Header {
	kind := usualKind{o.output, o.Batched}
	if h, ok := c.usuals.Load(kind); ok {
		return h.(http.Header)
	}
	header := http.Header{
		"Accept":        {"*/*"},
		"Content-Type":  {schema.ContentType(o.output, o.Batched)},
		headerEventType: {"Notification"},
		headerMetadata:  {"1"},
	}
	if origin := c.cfg.Origin; o.output == schema.CloudEvents {
		header[headerMetadata] = []string{"1.0"}
		if egress.Sendable("Origin", origin) && origin != "" {
			header["Webhook-Request-Origin"] = []string{origin}
			header["Origin"] = []string{origin}
		}
	}
	c.usuals.Store(kind, header)
	return header
}

// usualKind is what usual headers depend on.
type usualKind struct {
	output  schema.Kind
	batched bool
}

// scalar gives a string, a number or a boolean as text. All else is no value of a header, nor is
// what is too long or would break out of one.
func scalar(raw []byte) (string, bool) {
	if len(raw) == 0 {
		return "", false
	}
	text := ""
	switch c := raw[0]; {
	case c == '"' && bytes.IndexByte(raw, '\\') < 0:
		text = string(raw[1 : len(raw)-1])
	case c == '"':
		if json.Unmarshal(raw, &text) != nil {
			return "", false
		}
	case c == 't' || c == 'f' || c == '-' || c >= '0' && c <= '9':
		text = string(raw)
	default:
		return "", false
	}
	return text, len(text) <= maxValueBytes && egress.Sendable("X", text)
}

// counts are the values of aeg-delivery-count that occur, made once.
var counts = func() (all [64][]string) {
	for i := range all {
		all[i] = []string{strconv.Itoa(i)}
	}
	return all
}()

// countValue is the value of aeg-delivery-count.
func countValue(attempts int) []string {
	if attempts >= 0 && attempts < len(counts) {
		return counts[attempts]
	}
	return []string{strconv.Itoa(attempts)}
}

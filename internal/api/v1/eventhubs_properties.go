package v1

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/event"
)

const brokerPropertiesHelp = `write it like BrokerProperties: {"PartitionKey":"k"}`

// brokerProperties are the properties of the Event Hubs REST API that mean something
// to a hub. The others belong to queues, and are left aside as the service does.
type brokerProperties struct {
	PartitionKey  text
	MessageID     text `json:"MessageId"`
	CorrelationID text `json:"CorrelationId"`
	ContentType   text
	Label         text
}

func (p brokerProperties) fill(ev *event.Event) {
	ev.Key = string(p.PartitionKey)
	ev.Subject = string(p.Label)
	if p.MessageID != "" {
		ev.MessageID = string(p.MessageID)
	}
	if p.CorrelationID != "" {
		ev.CorrelationID = string(p.CorrelationID)
	}
	if p.ContentType != "" {
		ev.ContentType = string(p.ContentType)
	}
}

// headerProperties makes application properties of the headers that HTTP itself has no
// use for. Names have HTTP's canonical spelling (Device-Id), since case means nothing
// in a header and is lost on the way.
func headerProperties(header http.Header) map[string]any {
	var props map[string]any
	for name, values := range header {
		if standardHeader(name) {
			continue
		}
		if props == nil {
			props = map[string]any{}
		}
		props[name] = headerValue(strings.Join(values, ", "))
	}
	return props
}

// headerValue gives a header the type it looks like, as the service does: int, long,
// double or boolean, else string.
func headerValue(text string) any {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return int32(n)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	// ParseFloat takes more than a plain number: hex, infinities, underscores.
	if strings.Trim(text, "+-.0123456789eE") == "" {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	}
	switch {
	case strings.EqualFold(text, "true"):
		return true
	case strings.EqualFold(text, "false"):
		return false
	}
	return text
}

// standardHeader tells HTTP's own headers, in their canonical spelling, from those a
// sender made up. What proxies add on the way is not the sender's either.
func standardHeader(name string) bool {
	switch name {
	case "Accept", "Authorization", "Brokerproperties", "Cache-Control", "Connection", "Cookie", "Date", "Dnt",
		"Expect", "Forwarded", "From", "Host", "Keep-Alive", "Max-Forwards", "Origin", "Pragma", "Priority", "Range",
		"Referer", "Te", "Traceparent", "Tracestate", "Trailer", "Transfer-Encoding", "Upgrade", "Upgrade-Insecure-Requests", "User-Agent", "Via",
		"Warning", "X-Real-Ip", "X-Ms-Retrypolicy", "X-Request-Id":
		return true
	}
	for _, prefix := range []string{"Accept-", "Access-Control-", "Content-", "If-", "Proxy-", "Sec-", "X-Forwarded-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

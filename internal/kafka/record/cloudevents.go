package record

import (
	"bytes"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// The prefixes of the attributes of a CloudEvent, by its Kafka and its AMQP binding. The latter has two, of
// which one goes with JMS.
const (
	cloudHeader        = "ce_"
	cloudHeaderVersion = cloudHeader + "specversion"
	cloudProperty      = "cloudEvents:"
	cloudPropertyJMS   = "cloudEvents_"
)

// appendCloudEvent appends the attributes of a CloudEvent, if the headers are those of one, as strings and
// with the names of the AMQP binding. So its SDKs know it. [U]
func appendCloudEvent(dst []byte, headers *headerSet) (_ []byte, pairs int) {
	if headers.find(cloudHeaderVersion) < 0 {
		return dst, 0
	}
	var name []byte
	for i, h := range headers.all {
		attribute, is := bytes.CutPrefix(h.Name, []byte(cloudHeader))
		if !is || len(attribute) == 0 || h.Value == nil || !utf8.Valid(h.Value) || headers.replaced(i) {
			continue
		}
		name = append(append(name[:0], cloudProperty...), attribute...)
		if headers.find(string(name)) >= 0 { // a producer that knows both has said it
			continue
		}
		dst = wire.AppendStringBytes(wire.AppendStringBytes(dst, name), h.Value)
		pairs++
	}
	return dst, pairs
}

// cloudAttribute gives the attribute of a CloudEvent that an application property is; nil if it is none.
func cloudAttribute(property []byte) []byte {
	for _, prefix := range [...]string{cloudProperty, cloudPropertyJMS} {
		if attribute, is := bytes.CutPrefix(property, []byte(prefix)); is && len(attribute) > 0 {
			return attribute
		}
	}
	return nil
}

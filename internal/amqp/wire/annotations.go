package wire

import "bytes"

// The message annotations that belong to the hub. It sets them on delivery, and what a
// sender puts there (because it sends on what it received) is not kept.
const (
	AnnotationSequenceNumber = "x-opt-sequence-number"
	AnnotationOffset         = "x-opt-offset"
	AnnotationEnqueuedTime   = "x-opt-enqueued-time"
	AnnotationPartitionKey   = "x-opt-partition-key"
	AnnotationPublisher      = "x-opt-publisher"

	// The three by which an idempotent producer numbers its events begin with this.
	annotationProducerPrefix = "com.microsoft:producer-"
)

// IsOwnAnnotation reports whether a message annotation is one of the hub's own.
func IsOwnAnnotation(name []byte) bool {
	switch string(name) {
	case AnnotationSequenceNumber, AnnotationOffset, AnnotationEnqueuedTime,
		AnnotationPartitionKey, AnnotationPublisher:
		return true
	default:
		return bytes.HasPrefix(name, []byte(annotationProducerPrefix))
	}
}

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

	// The three of an idempotent producer: long, short, int.
	AnnotationProducerID       = annotationProducerPrefix + "id"
	AnnotationProducerEpoch    = annotationProducerPrefix + "epoch"
	AnnotationProducerSequence = annotationProducerPrefix + "sequence-number"

	// The three by which an idempotent producer numbers its events begin with this.
	annotationProducerPrefix = "com.microsoft:producer-"
)

// The delivery annotations that describe to a consumer the partition.
const (
	AnnotationLastSequence = "last_enqueued_sequence_number"
	AnnotationLastOffset   = "last_enqueued_offset"
	AnnotationLastTime     = "last_enqueued_time_utc"
	AnnotationRetrieved    = "runtime_info_retrieval_time_utc"
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

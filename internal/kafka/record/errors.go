package record

import "errors"

// Why a batch is refused, told apart by what its producer should do next; Kafka has a code for each.
var (
	// ErrCorrupt: the bytes are not those that were sent: some are missing, or the checksum is another.
	// Sent again they may be right. CORRUPT_MESSAGE, 2.
	ErrCorrupt = errors.New("record batch is damaged")
	// ErrTooLarge: the batch measures more than it may, or a record of it, or all of them when unpacked.
	// MESSAGE_TOO_LARGE, 10.
	ErrTooLarge = errors.New("record batch is too large")
	// ErrCompression: the records are packed in a way that is not known. UNSUPPORTED_COMPRESSION_TYPE, 76.
	ErrCompression = errors.New("compression of record batch is not known")
	// ErrInvalid: the bytes are as they were sent, and no batch that may be stored. INVALID_RECORD, 87.
	ErrInvalid = errors.New("record batch is invalid")
)

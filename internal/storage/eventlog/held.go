package eventlog

// What a cursor holds in memory: nothing at the end, else what it last read ahead, or the largest
// batch of that, whichever is more. One that translates has a frame and a part of its events, which is no
// more where frames of the form measure half of a batch. Who has many readers counts it.
const (
	readAheadBytes = 256 << 10
	MaxHeldBytes   = readAheadBytes + MaxBatchBytes
)

// HeldBytes is about what a cursor holds that has given the run.
func HeldBytes(r Run) int {
	if len(r.Events) == 0 {
		return 0
	}
	const header = 48 // of an Event: two slices
	return max(Batch{Events: r.Events}.Bytes(), readAheadBytes) + header*len(r.Events)
}

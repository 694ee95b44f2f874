package eventlog

// Claim is the right to append in the name of a producer, as [Partition.Claim] gives it and
// [Batch.Claim] takes it along. It is a plain value. The zero value is no claim.
type Claim struct {
	// Epoch is the engine's own, higher with each claim of the producer; an engine with one process
	// may leave it 0.
	Epoch uint64
	// Next is a number that all events lie below which were stored for the producer before the claim.
	Next Sequence
}

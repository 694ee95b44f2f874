package metatest

// Manner is how a store differs from the plainest one.
type Manner = manner

// NewModel makes a store of a manner.
func NewModel(m Manner) *Memory {
	s := NewMemory()
	s.manner = m
	return s
}

// NewBrokenNode makes a late node whose Fresh does nothing.
func NewBrokenNode(s *Memory) *LateNode {
	n := NewLateNode(s)
	n.broken = true
	return n
}

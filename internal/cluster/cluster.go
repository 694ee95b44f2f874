// Package cluster knows the nodes of a yard: who this one is, which others are alive, and how to
// ask one of them something.
//
// A node is one process. Each writes an entry of its own, nodes/ID, every few seconds; the others
// see by it that the node lives, each by its own clock, so that clocks need not agree. A node whose
// entry has not changed for DeadAfter is dead for who saw that: what it held may be taken. The node
// itself may be alive all the same, cut off from the store or frozen. So it counts, too, from before
// its last successful write, and QuietAfter is shorter: when others may take what it holds it has
// long stopped using it.
//
//	write acknowledged      QuietAfter           DeadAfter
//	|-----------------------|--------------------|------------> time
//	may act                 must not act         others may take what it held
//
// Who was quiet, be it for a moment, may have lost everything. Therefore each span of time in which
// a node may act without a break has a number, its term: what was held in one term is held in the
// next only after a look at the store (see Nodes.Standing).
//
// A yard on one machine has one node, Alone: it does no I/O, and it may always act.
package cluster

import (
	"errors"
	"fmt"
	"time"
)

// The times of presence. All nodes of a yard use the same.
const (
	// WriteInterval is how often a node writes its entry.
	WriteInterval = 3 * time.Second
	// QuietAfter is how long a node may act after it began its last successful write.
	QuietAfter = 11 * time.Second
	// DeadAfter is how long an entry is unchanged, by the clock of who looks, until its node is
	// dead for that one.
	DeadAfter = 15 * time.Second
	// LookInterval is how often a node looks at the entries of the others.
	LookInterval = time.Second
	// AskTimeout bounds a request that was given no deadline.
	AskTimeout = 5 * time.Second
	// ForgetAfter is how long a dead node's entry stays, for who wants to know what became of it.
	ForgetAfter = time.Hour
)

// Node is one process of a yard.
type Node struct {
	// ID is given by the operator and stays when the process is started again.
	ID string `json:"id"`
	// Incarnation is drawn at random by each process: what one process held the next of the same
	// ID does not hold.
	Incarnation string `json:"incarnation"`
}

func (n Node) String() string { return n.ID + "/" + n.Incarnation }

// What a caller branches on.
var (
	// ErrNoNode: nobody answers there. The process has ended, or has not begun to serve, or cannot
	// be reached. It does not say that the node is dead: see Nodes.Alive.
	ErrNoNode = errors.New("the node does not answer")
	// ErrTooLarge: a request or its answer is larger than the wire carries.
	ErrTooLarge = errors.New("too large to be sent between nodes")
	// ErrTaken: another process that lives has this node's ID.
	ErrTaken = errors.New("another process has this node's ID")
)

// RemoteError is what the handler at another node returned, or why it has none.
type RemoteError struct {
	Node    Node
	Subject string
	// Text is the error's text there.
	Text string
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("node %s refused %s: %s", e.Node.ID, e.Subject, e.Text)
}

// MaxIDBytes is the most a node's ID may measure.
const MaxIDBytes = 63

// CheckID says why a text cannot be a node's ID: it has 1 to MaxIDBytes letters, digits, '.', '-'
// and '_', as host names have.
func CheckID(id string) error {
	if id == "" || len(id) > MaxIDBytes {
		return fmt.Errorf("node ID %q has %d bytes: 1 to %d are allowed", id, len(id), MaxIDBytes)
	}
	for _, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
		default:
			return fmt.Errorf("node ID %q has %q: only letters, digits, '.', '-' and '_' are allowed", id, r)
		}
	}
	return nil
}

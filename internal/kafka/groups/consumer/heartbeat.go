package consumer

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
)

// Epochs by which a member says something else than where it is.
const (
	EpochJoin        int32 = 0
	EpochLeave       int32 = -1
	EpochStaticLeave int32 = -2 // and will be back under the same instance id
)

// What one member may say about itself; ids are bounded as those of all groups.
const (
	maxNames      = 1000
	maxExpression = 1024 // bytes
)

// Heartbeat is what a member says. Nil, and what is said to mean it, is «as before».
type Heartbeat struct {
	// Member is its id: made by the client, or by the coordinator for one that joins without.
	Member string
	// Epoch is that of its last answer, or one of those above.
	Epoch int32
	// Instance is the id of a static member, empty for others. It is said each time.
	Instance string
	// Rack, Client and Host are shown and nothing else; an empty rack is as before.
	Rack, Client, Host string
	// RebalanceTimeout is how long the member may take to give a partition up; negative: as before.
	RebalanceTimeout time.Duration
	// Names are what it subscribes to, besides what Expression matches.
	Names      []string
	Expression *string
	Assignor   *string
	// Owned is what it consumes at present, if Reported.
	Owned    Set
	Reported bool
	// Resolve has the expression matched again, because hubs or rights may have changed.
	Resolve bool
}

// whole: the member has said everything about itself. Clients do so when they join, and whenever an
// answer did not reach them.
func (h Heartbeat) whole() bool {
	return h.RebalanceTimeout >= 0 && (h.Names != nil || h.Expression != nil) && h.Reported
}

// Check refuses what no group could make sense of.
func (h Heartbeat) Check() error {
	refused := func(why string) error { return fmt.Errorf("%w: %s", ErrInvalid, why) }
	switch {
	case h.Member == "":
		return refused("the member id is missing")
	case h.Epoch < EpochStaticLeave:
		return refused("the member epoch is below -2")
	case h.Epoch == EpochStaticLeave && h.Instance == "":
		return refused("only static members leave with epoch -2: set group.instance.id, or leave with -1")
	case max(len(h.Member), len(h.Instance), len(h.Rack), len(h.Client), len(h.Host)) > member.MaxIDBytes:
		return refused(fmt.Sprintf("ids have at most %d bytes", member.MaxIDBytes))
	case slices.ContainsFunc(append([]string{h.Member, h.Instance, h.Rack, h.Client, h.Host}, h.Names...), malformed):
		return refused("ids and names are UTF-8")
	case len(h.Names) > maxNames:
		return refused(fmt.Sprintf("a member subscribes to at most %d names: use a regular expression", maxNames))
	}
	if h.Epoch == EpochJoin {
		switch {
		case h.RebalanceTimeout < 0:
			return refused("a member that joins says its rebalance time-out")
		case h.Names == nil && h.Expression == nil:
			return refused("a member that joins says what it subscribes to")
		case len(h.Owned) > 0:
			return refused("a member that joins owns nothing: give up all partitions first")
		}
	}
	if h.Assignor != nil && *h.Assignor != "" && assignors[*h.Assignor] == nil {
		return fmt.Errorf("%w, not %.64q", ErrAssignor, *h.Assignor)
	}
	return nil
}

func malformed(s string) bool { return !utf8.ValidString(s) }

// Answer is what a member hears.
type Answer struct {
	Member string
	Epoch  int32
	// Assignment is what it may consume, and nothing else, if Assigns; else that is as before.
	Assignment Set
	Assigns    bool
}

package survey

import (
	"cmp"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// maxWorst is how many streams are shown one by one.
const maxWorst = 10

// Streams is how all streams of a yard are kept.
type Streams struct {
	Count           int
	Messages, Bytes int64
	// Leaderless have no leader, or nobody answered for them: nothing can be stored in them.
	Leaderless int
	// Offline have a replica whose server is gone, Lagging one that is behind. A stream can be both.
	Offline, Lagging int
	// Gaps is how many messages are missing in the midst of the stream that lacks most, Gappy. Servers keep a list of
	// them, and give that up beyond a million.
	Gaps  int64
	Gappy string
	// Leaders is how many streams each server leads.
	Leaders map[string]int
	// Worst are up to ten streams that are not well, the worst first.
	Worst []Stream
}

// Stream is one that is not well.
type Stream struct {
	Name string
	// Leader is empty where there is none.
	Leader          string
	Messages, Bytes int64
	// Replicas are those that are not well.
	Replicas []Replica
}

// Replica is a server's copy of a stream, beside the leader's.
type Replica struct {
	Server  string
	Offline bool
	// Lag is how many changes it is behind; a replica can be behind by an amount that is not known.
	Lag int64
}

// add takes in what a stream's leader says.
func (s *Streams) add(info *jetstream.StreamInfo) {
	one := Stream{Name: info.Config.Name, Messages: int64(info.State.Msgs), Bytes: int64(info.State.Bytes)}
	s.Count++
	s.Messages += one.Messages
	s.Bytes += one.Bytes
	if gaps := gapsIn(info.State); gaps > s.Gaps {
		s.Gaps, s.Gappy = gaps, one.Name
	}
	if info.Cluster == nil { // a server that is alone leads everything, and does not say so
		return
	}
	one.Leader = info.Cluster.Leader
	for _, r := range info.Cluster.Replicas {
		if r.Offline || !r.Current {
			one.Replicas = append(one.Replicas, Replica{Server: r.Name, Offline: r.Offline, Lag: int64(r.Lag)})
		}
	}
	if one.Leader != "" {
		if s.Leaders == nil {
			s.Leaders = map[string]int{}
		}
		s.Leaders[one.Leader]++
	}
	s.note(one)
}

func gapsIn(state jetstream.StreamState) int64 {
	if state.Msgs == 0 {
		return 0
	}
	return int64(state.LastSeq-state.FirstSeq) + 1 - int64(state.Msgs)
}

// miss takes in that nobody answers for a stream.
func (s *Streams) miss(name string) {
	s.Count++
	s.note(Stream{Name: name})
}

// note counts what is wrong with a stream, and keeps it where it is one of the worst.
func (s *Streams) note(one Stream) {
	offline, lag := one.trouble()
	switch {
	case one.Leader == "":
		s.Leaderless++
	case len(one.Replicas) == 0:
		return
	}
	if offline > 0 {
		s.Offline++
	}
	if offline < len(one.Replicas) {
		s.Lagging++
	}
	at, _ := slices.BinarySearchFunc(s.Worst, one, func(there, one Stream) int {
		thereOffline, thereLag := there.trouble()
		return cmp.Or(
			-cmp.Compare(leaderless(there), leaderless(one)), -cmp.Compare(thereOffline, offline), -cmp.Compare(thereLag, lag),
			cmp.Compare(there.Name, one.Name))
	})
	s.Worst = slices.Insert(s.Worst, at, one)
	s.Worst = s.Worst[:min(len(s.Worst), maxWorst)]
}

// trouble is how many replicas are offline, and by how much the others are behind at most.
func (s Stream) trouble() (offline int, lag int64) {
	for _, r := range s.Replicas {
		if r.Offline {
			offline++
		} else {
			lag = max(lag, r.Lag)
		}
	}
	return offline, lag
}

func leaderless(s Stream) int {
	if s.Leader == "" {
		return 1
	}
	return 0
}

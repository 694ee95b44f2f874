package server

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/api/peer"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/busiest"
)

// keys are what all nodes have counted of partition keys: each counts those that are published through it.
type keys struct {
	every *peer.Gathering[keyQuestion, []broker.KeyTally]
}

type keyQuestion struct {
	Hub        string   `json:"hub"`
	Partitions []string `json:"partitions"`
}

func (y *yard) newKeys(judge peer.Judge) *keys {
	need := func(q keyQuestion) (frame.Need, auth.Entity) { return frame.Of(frame.Hub, auth.Listen), auth.At(q.Hub) }
	return &keys{peer.NewGathering(y.nodes, judge, "keys.count", need, func(_ context.Context, q keyQuestion) ([]broker.KeyTally, error) {
		if len(q.Partitions) > broker.MaxPartitions {
			return nil, fmt.Errorf("keys of %d partitions are asked for, and %d are the most", len(q.Partitions), broker.MaxPartitions)
		}
		return y.broker.Keys(q.Hub, q.Partitions)
	})}
}

// count is documented by v1.Keys.
func (k *keys) count(ctx context.Context, hub string, partitions []string) ([]broker.KeyTally, []string, error) {
	answers, missing, err := k.every.Ask(ctx, keyQuestion{hub, partitions})
	if err != nil {
		return nil, nil, err
	}
	return sumKeys(answers, len(partitions)), missing, nil
}

// sumKeys adds up what nodes have counted, partition by partition.
func sumKeys(answers [][]broker.KeyTally, partitions int) []broker.KeyTally {
	all := make([]broker.KeyTally, partitions)
	for i := range all {
		all[i] = answers[0][i] // this node's
		var parts []busiest.Tally
		for _, a := range answers {
			if len(a) != partitions {
				continue
			}
			if parts = append(parts, a[i].Tally); a[i].Since.Before(all[i].Since) {
				all[i].Since = a[i].Since
			}
		}
		all[i].Tally = busiest.Sum(parts...)
	}
	return all
}

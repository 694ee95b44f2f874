package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/eventyard/eventyard/processor"
)

// leaseRecord is a lease as the scripts write it.
type leaseRecord struct {
	Owner    string `json:"owner"`
	Epoch    int64  `json:"epoch,string"`
	Acquired string `json:"acquired"`
	Renewed  string `json:"renewed"`
	Version  string `json:"version"`
}

func parseLease(partition, text string) (processor.Lease, error) {
	var r leaseRecord
	err := json.Unmarshal([]byte(text), &r)
	acquired, badAcquired := clock(r.Acquired)
	renewed, badRenewed := clock(r.Renewed)
	if err := errors.Join(err, badAcquired, badRenewed); err != nil {
		return processor.Lease{}, fmt.Errorf("lease of partition %s: %w", partition, err)
	}
	return processor.Lease{
		Partition: partition, Owner: r.Owner, Epoch: r.Epoch,
		Acquired: acquired, Renewed: renewed, Version: processor.Version(r.Version),
	}, nil
}

func (s *Store) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	records, err := s.all(ctx, s.leases(g))
	if err != nil {
		return nil, fmt.Errorf("read leases of %s/%s: %w", g.Hub, g.Group, err)
	}
	leases := make([]processor.Lease, 0, len(records))
	for partition, text := range records {
		l, err := parseLease(partition, text)
		if err != nil {
			return nil, err
		}
		leases = append(leases, l)
	}
	return leases, nil
}

// Claim writes leases, all in one script.
func (s *Store) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	if len(leases) == 0 {
		return nil, context.Cause(ctx)
	}
	args := []any{s.channel(g), newVersion()}
	for _, l := range leases {
		args = append(args, l.Partition, l.Owner, number(l.Epoch), string(l.Version))
	}
	answer, err := claimScript.on(ctx, s.client, []string{s.leases(g)}, args...)
	if err != nil {
		return nil, fmt.Errorf("claim %d leases of %s/%s: %w", len(leases), g.Hub, g.Group, err)
	}
	// The answer is numbers of leases, each with what was written.
	var won []processor.Lease
	for i := 0; i+1 < len(answer); i += 2 {
		at, err := strconv.Atoi(answer[i])
		if err != nil || at < 0 || at >= len(leases) {
			return won, fmt.Errorf("claim gave lease number %q", answer[i])
		}
		l, err := parseLease(leases[at].Partition, answer[i+1])
		if err != nil {
			return won, err
		}
		won = append(won, l)
	}
	return won, nil
}

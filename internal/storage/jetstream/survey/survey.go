// Package survey finds out how the streams of a yard are kept: who leads them, which replicas lag or
// are offline, how much they hold. It asks only when somebody wants to know. The sums are pure
// (sum.go).
package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
)

const (
	// pageTime is how long the servers may take for a page: its leader gathers answers of all leaders
	// of streams for 4 s.
	pageTime = 6 * time.Second
	// looks is how often streams are asked for while nobody answers for some: a stream whose leader is being
	// chosen, since it was just made or moved, has one at the next look.
	looks = 3
	// maxStreams is how many are looked at; a yard has some two thousand at most.
	maxStreams = 20_000
)

// page is what JetStream answers to STREAM.LIST. Missing are streams that nobody answered for.
type page struct {
	Error   *answers.Refusal        `json:"error"`
	Total   int                     `json:"total"`
	Streams []*jetstream.StreamInfo `json:"streams"`
	Missing []string                `json:"missing"`
}

// Ask surveys the streams of a yard. It returns when the servers have answered, or with an error after
// some seconds without an answer; ctx may end it sooner.
func Ask(ctx context.Context, conn *nats.Conn, yard string) (Streams, error) {
	found, missing, err := look(ctx, conn, yard)
	if err != nil {
		return Streams{}, err
	}
	var sum Streams
	for _, info := range found {
		sum.add(info)
	}
	for _, name := range missing {
		sum.miss(name)
	}
	return sum, nil
}

// All gives the streams of a yard as their leaders know them, and the names of those that nobody
// answered for, however often they were asked for. It returns as Ask does, if later.
func All(ctx context.Context, conn *nats.Conn, yard string) (found []*jetstream.StreamInfo, missing []string, err error) {
	for range looks {
		found, missing, err = look(ctx, conn, yard)
		if err != nil || len(missing) == 0 {
			break
		}
	}
	return found, missing, err
}

func look(ctx context.Context, conn *nats.Conn, yard string) (found []*jetstream.StreamInfo, missing []string, err error) {
	for offset := 0; offset < maxStreams; {
		p, err := askPage(ctx, conn, map[string]any{"offset": offset, "subject": "y." + yard + ".>"})
		if err != nil {
			return nil, nil, fmt.Errorf("ask for the streams: %w", err)
		}
		found, missing = append(found, p.Streams...), append(missing, p.Missing...)
		got := len(p.Streams) + len(p.Missing)
		if offset += got; got == 0 || offset >= p.Total {
			break
		}
	}
	return found, missing, nil
}

func askPage(ctx context.Context, conn *nats.Conn, ask any) (p page, err error) {
	data, err := json.Marshal(ask)
	if err != nil {
		return page{}, err
	}
	if !conn.IsConnected() {
		return page{}, errors.New("no NATS server is connected")
	}
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	answer, err := conn.RequestWithContext(ctx, "$JS.API.STREAM.LIST", data)
	if err != nil {
		return page{}, err
	}
	if err := json.Unmarshal(answer.Data, &p); err != nil {
		return page{}, err
	}
	if p.Error != nil {
		return page{}, p.Error
	}
	return p, nil
}

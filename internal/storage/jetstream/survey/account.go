package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
)

// accountTime is how long the servers may take to say what an account has.
const accountTime = 3 * time.Second

// nearPercent is how much of a limit is used where it is warned of.
const nearPercent = 80

// Near asks what the account that a connection is let in to may have, and gives a sentence for each limit that is
// nearly reached: then hubs cannot be created, or nothing can be stored, soon.
func Near(ctx context.Context, conn *nats.Conn) ([]string, error) {
	if !conn.IsConnected() {
		return nil, errors.New("no NATS server is connected")
	}
	ctx, cancel := context.WithTimeout(ctx, accountTime)
	defer cancel()
	answer, err := conn.RequestWithContext(ctx, "$JS.API.INFO", nil)
	if err != nil {
		return nil, err
	}
	var said struct {
		Error *answers.Refusal `json:"error"`
		jetstream.AccountInfo
	}
	if err := json.Unmarshal(answer.Data, &said); err != nil {
		return nil, err
	}
	if said.Error != nil {
		return nil, said.Error
	}
	return near(said.AccountInfo), nil
}

// near judges an account, whose limits are its own or, where it has several, one of each number of replicas.
func near(a jetstream.AccountInfo) (all []string) {
	judge := func(name string, t jetstream.Tier) {
		of := func(what, setting string, used, most int64) {
			if most > 0 && float64(used)*100 >= float64(most)*nearPercent {
				all = append(all, fmt.Sprintf("the account%s at the NATS servers has used %d %% of the %s that it may have: raise %s",
					name, int(float64(used)*100/float64(most)), what, setting))
			}
		}
		of("streams", "max_streams", int64(t.Streams), int64(t.Limits.MaxStreams))
		of("storage", "max_file", int64(max(t.Store, t.ReservedStore)), t.Limits.MaxStore)
	}
	judge("", a.Tier)
	for _, name := range slices.Sorted(maps.Keys(a.Tiers)) {
		judge(" ("+name+")", a.Tiers[name])
	}
	return all
}

package survey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C8: limits that are nearly reached are named, whosever they are.
func TestNearLimits(t *testing.T) {
	part := func(streams, maxStreams int, store uint64, maxStore int64) (of jetstream.Tier) {
		of.Streams, of.Store = streams, store
		of.Limits.MaxStreams, of.Limits.MaxStore = maxStreams, maxStore
		return of
	}
	for name, tt := range map[string]struct {
		account jetstream.AccountInfo
		want    []string // words of each warning
	}{
		"no limits":    {jetstream.AccountInfo{Tier: part(100, -1, 1<<40, -1)}, nil},
		"far from all": {jetstream.AccountInfo{Tier: part(7, 10, 79, 100)}, nil},
		"streams":      {jetstream.AccountInfo{Tier: part(8, 10, 0, -1)}, []string{"80 % of the streams"}},
		"storage":      {jetstream.AccountInfo{Tier: part(1, -1, 1<<50, 1<<50)}, []string{"100 % of the storage"}},
		"by replicas": {jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{"R3": part(10, 10, 90, 100), "R1": part(1, 10, 0, 100)}},
			[]string{"(R3) at the NATS servers has used 100 % of the streams", "90 % of the storage"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := near(tt.account)
			testkit.MustThat(t, len(got) == len(tt.want), "got %q", got)
			for i, words := range tt.want {
				testkit.That(t, strings.Contains(got[i], words), "got %q, want %q in it", got[i], words)
			}
		})
	}
}

// C8: servers say what an account has.
func TestNear(t *testing.T) {
	url := natstest.StartAs(t, func(listen, folder string) string {
		return fmt.Sprintf("listen: %q\njetstream { store_dir: %q }\naccounts { YARD { jetstream { max_streams: 1 }, users: [{ user: a, password: b }] } }\n", listen, folder)
	})
	conn := testkit.Value(nats.Connect(url, nats.UserInfo("a", "b")))(t)
	defer conn.Close()
	testkit.Equal(t, len(testkit.Value(Near(t.Context(), conn))(t)), 0, "warnings of an empty account")
	js := testkit.Value(jetstream.New(conn))(t)
	testkit.Must(t, testkit.Err(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "one", Subjects: []string{"one"}})))
	got := testkit.Value(Near(t.Context(), conn))(t)
	testkit.That(t, len(got) == 1 && strings.Contains(got[0], "100 % of the streams"), "got %q", got)
}

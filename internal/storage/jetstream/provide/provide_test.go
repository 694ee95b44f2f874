package provide

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	missing = `{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`
	inUse   = `{"error":{"code":400,"err_code":10058,"description":"stream name already in use"}}`
)

// C1: nodes that begin at once have the same streams, even where the servers leave it to each other to
// say whether one is there. The servers are a double, on a server without JetStream.
func TestAStreamIsFoundOrMade(t *testing.T) {
	other := `{"config":{"name":"s","description":"another's"}}`
	tests := map[string]struct {
		infos []string // answers to the questions whether it is there; empty: none
		made  string   // the answer to the request
		want  string   // its description
	}{
		"it is there":                       {infos: []string{other, other}, made: inUse, want: "another's"},
		"it is made":                        {infos: []string{missing}, made: `{"config":{"description":"ours"}}`, want: "ours"},
		"nobody says whether it is there":   {infos: []string{""}, made: `{"config":{"description":"ours"}}`, want: "ours"},
		"another makes it, with other ones": {infos: []string{"", other}, made: inUse, want: "another's"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := natstest.StartAs(t, func(listen, _ string) string { return "listen: " + listen })
			conn := testkit.Value(nats.Connect(url))(t)
			t.Cleanup(conn.Close)
			infos := tt.infos // of the one goroutine that a subscription has
			testkit.Value(conn.Subscribe("$JS.API.STREAM.*.*", func(m *nats.Msg) {
				answer := tt.made
				if strings.Contains(m.Subject, ".INFO.") {
					answer, infos = infos[0], infos[1:]
				}
				if answer != "" {
					testkit.Check(t, m.Respond([]byte(answer)))
				}
			}))(t)
			js := testkit.Value(jetstream.New(conn))(t)
			have := testkit.Value(Stream(t.Context(), js, jetstream.StreamConfig{Name: "s"}))(t)
			testkit.Equal(t, have.Description, tt.want)
		})
	}
}

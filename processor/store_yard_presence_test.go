package processor_test

import (
	"context"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// replying is a hub whose yard gives one answer to whatever is asked.
type replying struct{ body string }

func (*replying) Name() string { return "h" }

func (r *replying) Call(context.Context, groupwire.Call) ([]byte, error) { return []byte(r.body), nil }

// C7: to a yard of an older version, which refuses what it does not know, leases hang on nothing.
func TestAYardSaysThatItsLeasesCanHangOnPresences(t *testing.T) {
	yard := &replying{`{"leases":[]}`}
	store, g := processor.YardStore(yard), processor.Group{Hub: "h", Group: "g"}
	keeps := func() bool { return store.(processor.PresenceStore).KeepsPresence() }
	testkit.Equal(t, keeps(), false, "before anything was asked")
	for _, c := range []struct {
		reply string
		want  bool
	}{{`{"leases":[]}`, false}, {`{"leases":[],"keepsPresence":true}`, true}, {`{"leases":[]}`, false}} {
		yard.body = c.reply
		testkit.Must(t, testkit.Err(store.Leases(t.Context(), g)))
		testkit.Equal(t, keeps(), c.want, "after %s", c.reply)
	}
}

package eventgrid

import (
	"context"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/testkit"
)

// panicking is definitions with a mistake in them.
type panicking struct{ *memory }

func (panicking) Publish(context.Context, string, [][]byte, *quota.Meter) error {
	panic("index out of range")
}

// A panic is told in Event Grid's form, and only the log has what it was.
func TestPanicsAreAnswered(t *testing.T) {
	y := newYard(t, func(c *Config) { c.Topics = panicking{c.Topics.(*memory)} })
	y.errors.Want(1)
	message := y.ask("POST", "/topics/orders/api/events", "["+event("a")+"]", withKey).refused(500, "InternalError")
	if strings.Contains(message, "index") {
		t.Errorf("the client is told what only the log should have: %s", message)
	}
	testkit.Equal(t, y.counted(y.handler.metrics.Requests, "Publish", "500"), 1,
		"requests are counted as failed by us")
}

func TestAConfigWithoutTopicsPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a listener without topics was made")
		}
	}()
	New(Config{})
}

package eventhubs

import (
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R1: a policy with the right to metrics alone opens nothing over AMQP: it cannot log in, and its token is for no hub.
func TestMetricsOpenNothing(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	y.policy("", "scraper", auth.Metrics)
	nc := testkit.Value(y.listener.Dial(t.Context()))(t)
	defer nc.Close()
	_, err := goamqp.NewConn(t.Context(), nc, &goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain("scraper", keyOf("scraper")), HostName: "localhost"})
	testkit.That(t, err != nil, "it has logged in")
	shown := credential{audience: "sb://localhost/orders", token: auth.Sign("sb://localhost/orders", "scraper", keyOf("scraper"), time.Now().Add(time.Hour))}
	testkit.Equal(t, shown.put(t, y.dial(nil)), "no", "its token")
}

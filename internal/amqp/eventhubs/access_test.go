package eventhubs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// credential is what a client shows: a token for a resource, which is its audience too. An empty
// token is put nowhere.
type credential struct{ audience, token string }

// credentials are the columns of testdata/access.txt.
func (y *yard) credentials() map[string]credential {
	const host, orders, stock = "sb://localhost/", "sb://localhost/orders", "sb://localhost/stock"
	made := func(resource, policy string, life time.Duration) credential {
		return credential{resource, sasToken(resource, policy, life)}
	}
	unsigned, _, _ := strings.Cut(sasToken(host, auth.RootPolicy, time.Hour), "&sig=")
	return map[string]credential{
		"none":      {audience: orders},
		"send":      made(orders, "sends", time.Hour),
		"listen":    made(orders, "listens", time.Hour),
		"manage":    made(orders, "manages", time.Hour),
		"metrics":   made(host, "scraper", time.Hour),
		"root":      made(host, auth.RootPolicy, time.Hour),
		"other":     made(stock, "stocks", time.Hour),
		"group":     made(orders+"/ConsumerGroups/billing", "listens", time.Hour),
		"group2":    made(orders+"/ConsumerGroups/audit", "listens", time.Hour),
		"publisher": made(orders+"/Publishers/device-7", "sends", time.Hour),
		"key":       {orders, auth.Sign(orders, "manages", keyOf("sends"), time.Now().Add(time.Hour))},
		"topic":     {host, testkit.Value(topickey.Sign("https://localhost/topics/shop/api/events", topickey.New(), time.Now().Add(time.Hour)))(y.t)},
		"blob":      {host, auth.Sign(host, auth.RootPolicy, y.policies.Account().Primary, time.Now().Add(time.Hour))},
		"expired":   made(host, auth.RootPolicy, -time.Hour),
		"malformed": {host, unsigned + "&se=9999999999&skn=" + auth.RootPolicy},
	}
}

// accessLine is a line of testdata/access.txt.
type accessLine struct {
	node, link string
	want       map[string]string // by the name of the credential
}

func readAccess(t *testing.T) (names []string, lines []accessLine) {
	t.Helper()
	text := string(testkit.Value(os.ReadFile(filepath.Join("testdata", "access.txt")))(t))
	for n, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(line, "#"):
		case names == nil:
			names = fields[2:]
		default:
			testkit.MustEqual(t, len(fields), len(names)+2, "columns of line %d", n+1)
			l := accessLine{node: fields[0], link: fields[1], want: map[string]string{}}
			for i, name := range names {
				l.want[name] = fields[2+i]
			}
			lines = append(lines, l)
		}
	}
	return names, lines
}

// R1, H9: every node of the listener and every kind of credential: what testdata/access.txt says.
func TestAccessOfEveryNode(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1, "billing", "audit")
	y.hub("stock", 1)
	y.policy("orders", "sends", auth.Send)
	y.policy("orders", "listens", auth.Listen)
	y.policy("orders", "manages", auth.Manage)
	y.policy("stock", "stocks", auth.Manage)
	y.policy("", "scraper", auth.Metrics)
	names, lines := readAccess(t)
	all := y.credentials()
	testkit.Equal(t, len(names), len(all), "columns")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			shown, ok := all[name]
			testkit.MustEqual(t, ok, true, "there is no credential %s", name)
			y := y.in(t)
			conn := y.dial(nil)
			put := shown.put(t, conn)
			for _, l := range lines {
				got := put
				if l.node != wordClaims || l.link != "ask" {
					got = y.try(t, conn, l, shown)
				}
				testkit.Equal(t, got, l.want[name], "%s %s", l.link, l.node)
			}
		})
	}
}

// put puts the token, and gives the outcome.
func (c credential) put(t *testing.T, conn *goamqp.Conn) string {
	t.Helper()
	s := newSession(t, conn)
	defer s.Close(t.Context())
	return statusOutcome(t, newRPC(t, s, wordClaims).ask(putToken(c.audience, c.token)))
}

// try does what a line says.
func (y *yard) try(t *testing.T, conn *goamqp.Conn, l accessLine, shown credential) string {
	t.Helper()
	if l.link == "bring" {
		conn = y.dial(&goamqp.ConnOptions{SASLType: goamqp.SASLTypePlain(auth.RootPolicy, keyOf(auth.RootPolicy)), HostName: "localhost"})
	}
	s := newSession(t, conn)
	defer s.Close(t.Context())
	switch l.link {
	case "send":
		_, err := s.NewSender(t.Context(), l.node, nil)
		return linkOutcome(t, err)
	case "receive":
		_, err := s.NewReceiver(t.Context(), l.node, listening{}.options())
		return linkOutcome(t, err)
	}
	sender, err := s.NewSender(t.Context(), l.node, nil)
	if err != nil {
		return linkOutcome(t, err)
	}
	testkit.Must(t, sender.Close(t.Context()))
	m := read(typeHub, "orders")
	switch {
	case l.node == wordYard:
		m.ApplicationProperties["operation"] = groupwire.OpLeases
		m.Data, m.Value = [][]byte{[]byte(`{"group":"billing"}`)}, nil
	case l.link == "bring" && shown.token != "":
		m.ApplicationProperties["security_token"] = shown.token
	}
	return statusOutcome(t, newRPC(t, s, l.node).ask(m))
}

// linkOutcome says what became of an attach in the words of testdata/access.txt.
func linkOutcome(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "yes"
	}
	switch condition := wire.Symbol(remoteError(t, err).Condition); condition {
	case condUnauthorized:
		return "no"
	case condNotFound:
		return "absent"
	case condArgument:
		return "wrong"
	default:
		return string(condition)
	}
}

// statusOutcome says the same of a reply.
func statusOutcome(t *testing.T, m *goamqp.Message) string {
	t.Helper()
	switch status := m.ApplicationProperties["status-code"]; status {
	case int32(200), int32(202):
		return "yes"
	case int32(401):
		return "no"
	default:
		return fmt.Sprint(status)
	}
}

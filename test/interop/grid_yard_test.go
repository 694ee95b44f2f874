//go:build linux

package interop

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// gridTime bounds what another process has to do, on a busy machine.
const gridTime = 30 * time.Second

// quickGrid makes what takes minutes in earnest happen at once, and waits exact.
const quickGrid = "grid: {jitterPercent: 0, deadDelay: 0s}"

// startGrid starts a yard that has a hub for what is not delivered to webhooks.
func startGrid(t *testing.T, settings ...string) *yard {
	t.Helper()
	if len(settings) == 0 {
		settings = []string{quickGrid}
	}
	return startYard(t, layout{hubs: map[string]int{"arrivals": 2}, settings: settings})
}

// cli is the yard's command line, with what it has to do.
func (y *yard) cli(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), checkedBuild.binary(t), append(args, "--server", "http://"+y.hostPort(t, "http"))...)
	cmd.Env = environment(map[string]string{"GORACE": "atexit_sleep_ms=0"}) // else each takes a second to end
	return cmd
}

// do runs a command and gives what it printed.
func (y *yard) do(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := y.cli(t, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("eventyard %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// refuses runs a command that has to fail, and gives what it said.
func (y *yard) refuses(t *testing.T, args ...string) string {
	t.Helper()
	out, err := y.cli(t, args...).CombinedOutput()
	if err == nil {
		t.Errorf("eventyard %s: was done\n%s", strings.Join(args, " "), out)
	}
	return string(out)
}

// ask runs a command and reads the JSON that it prints.
func ask[T any](t *testing.T, y *yard, args ...string) (answer T) {
	t.Helper()
	out := y.do(t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("eventyard %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return answer
}

// topic makes one.
func (y *yard) topic(t *testing.T, name, schema string, more ...string) admin.Topic {
	t.Helper()
	made := ask[admin.Topic](t, y, append([]string{"topic", "create", name, "--schema", schema}, more...)...)
	if path, ok := strings.CutPrefix(made.Endpoint, "http://"+y.hostPort(t, "http")); ok && y.behind != nil {
		made.SecureEndpoint = "https://" + y.hostPort(t, "https") + path // nodes are told one address of a balancer
	}
	if made.Keys == nil || made.Keys.Key1 == "" || made.SecureEndpoint == "" {
		t.Fatalf("topic %s was made like this: %+v", name, made)
	}
	return made
}

// subscribe makes a subscription to a topic and wants its endpoint to have agreed.
func (y *yard) subscribe(t *testing.T, topic, name, endpoint string, more ...string) admin.Subscription {
	t.Helper()
	args := append([]string{"subscription", "create", name, "--topic", topic, "--endpoint", endpoint}, more...)
	made := ask[admin.Subscription](t, y, args...)
	testkit.MustEqual(t, made.State, "active", "subscription %s: %s", name, made.Why)
	return made
}

// attempts are those made for a subscription, the first one first.
func (y *yard) attempts(t *testing.T, subscription string) []admin.Attempt {
	t.Helper()
	all := ask[[]admin.Attempt](t, y, "subscription", "attempts", subscription)
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

func (y *yard) dead(t *testing.T, subscription string) []admin.DeadLetter {
	t.Helper()
	return ask[[]admin.DeadLetter](t, y, "dead", "list", subscription)
}

// publish posts a body to a topic by hand.
func (y *yard) publish(t *testing.T, to admin.Topic, contentType, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.Endpoint, strings.NewReader(body))
	testkit.Must(t, err)
	r.Header.Set("aeg-sas-key", to.Keys.Key1)
	r.Header.Set("Content-Type", contentType)
	if status, answer := fetch(t, http.DefaultClient, r); status != http.StatusOK {
		t.Fatalf("publish to %s: %d %s", to.Name, status, answer)
	}
}

// gridEvents are so many events of Event Grid's schema, as a publication.
func gridEvents(ids ...string) string {
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprintf(`{"id":%q,"subject":"/shops/1","eventType":"order.placed","eventTime":"2030-01-02T15:04:05Z","dataVersion":"1","data":{"total":42}}`, id))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// cloudEvent is one with an attribute of its own.
func cloudEvent(id string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/shops/1","type":"order.placed","subject":"a","time":"2030-01-02T15:04:05Z","datacontenttype":"application/json","mine":"kept","data":{"total":42}}`, id)
}

// awaitDelivered waits until a subscription is being delivered: who receives from it before is told
// to ask again.
func (y *yard) awaitDelivered(t *testing.T, subscription string) {
	t.Helper()
	y.eventuallyShown(t, subscription, func(admin.Subscription) bool { return true })
}

// fetch sends a request and reads the whole answer.
func fetch(t *testing.T, client *http.Client, r *http.Request) (status int, body string) {
	t.Helper()
	answer, err := client.Do(r)
	testkit.Must(t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	return answer.StatusCode, string(all)
}

// trusting is a client that trusts the yard's authority.
func (y *yard) trusting(t *testing.T) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(y.authority(t))
	testkit.Must(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatal("the yard's authority is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// eventually asks until there is no complaint any more: of another process there is no other way
// to know.
func eventually(t *testing.T, complaint func() string) {
	t.Helper()
	deadline := time.Now().Add(gridTime)
	for {
		text := complaint()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s still: %s", gridTime, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// eventuallyShown waits until a subscription is as it should be, and gives it. It has counts only
// once it is being delivered, a moment after it was made or agreed to.
func (y *yard) eventuallyShown(t *testing.T, subscription string, wanted func(s admin.Subscription) bool) (shown admin.Subscription) {
	t.Helper()
	eventually(t, func() string {
		shown = ask[admin.Subscription](t, y, "subscription", "show", subscription)
		if shown.Stats != nil && shown.DeadLetters != nil && wanted(shown) {
			return ""
		}
		text, _ := json.Marshal(shown)
		return string(text)
	})
	return shown
}

package hub_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/amqp/eventhubs"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// mute takes connections and says nothing.
func mute(context.Context, string, string) (net.Conn, error) {
	near, _ := net.Pipe()
	return near, nil
}

// groups is a store of one lease for each group, whose owner is the group, except that some
// groups are special.
type groups struct {
	eventhubs.Groups
	// all is how many calls come together for group "together".
	all *sync.WaitGroup
}

func (g groups) Leases(ctx context.Context, of processor.Group) ([]processor.Lease, error) {
	switch of.Group {
	case "together":
		g.all.Done()
		g.all.Wait()
	case "forever":
		<-ctx.Done()
		return nil, ctx.Err()
	case "fenced":
		return nil, processor.ErrFenced
	case "large":
		return make([]processor.Lease, 5000), nil
	}
	return []processor.Lease{{Partition: "0", Owner: of.Group, Version: "1"}}, nil
}

// P8: the yard's own node answers, many at once on one pair of links.
func TestCallsRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20
		var all sync.WaitGroup
		all.Add(many)
		y := startMemory(t, memorySetup{groups: groups{all: &all}})
		h := y.dial(t, development.String(), hub.Config{}).Hub("h")
		var calls sync.WaitGroup
		for range many {
			calls.Go(func() {
				answer, err := h.Call(t.Context(), "leases", []byte(`{"group":"together"}`))
				if err != nil || !strings.Contains(string(answer), `"together"`) {
					t.Errorf("answered %s, %v", answer, err)
				}
			})
		}
		calls.Wait()
		large, err := h.Call(t.Context(), "leases", []byte(`{"group":"large"}`)) // many frames
		testkit.Must(t, err)
		if n := strings.Count(string(large), "{"); n < 5000 {
			t.Errorf("%d of 5000 leases", n)
		}
	})
}

func TestACallThatIsNoSuccessHasItsCode(t *testing.T) {
	bubble(t, memorySetup{groups: groups{}}, func(t *testing.T, y *memoryYard, client *hub.Client) {
		for _, test := range []struct {
			hub, operation, body string
			code                 int
			is                   error
		}{
			{"h", "leases", `{"group":"fenced"}`, 410, nil},
			{"h", "leases", `nonsense`, 400, nil},
			{"h", "no such operation", `{}`, 400, nil},
			{"none", "leases", `{"group":"g"}`, 404, hub.ErrNotFound},
		} {
			_, err := client.Hub(test.hub).Call(t.Context(), test.operation, []byte(test.body))
			var answer *hub.CallError
			if !errors.As(err, &answer) || answer.Code != test.code || answer.Description == "" {
				t.Errorf("%+v: %v", test, err)
			}
			if test.is != nil {
				wantError(t, err, test.is)
			}
		}
	})
}

func TestACallEndsWithItsContext(t *testing.T) {
	bubble(t, memorySetup{groups: groups{}}, func(t *testing.T, y *memoryYard, client *hub.Client) {
		h := client.Hub("h")
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan error, 2)
		call := func(ctx context.Context) {
			_, err := h.Call(ctx, "leases", []byte(`{"group":"forever"}`))
			answers <- err
		}
		go call(ctx)
		go call(context.Background())
		synctest.Wait()
		cancel()
		wantError(t, <-answers, context.Canceled)
		testkit.Must(t, testkit.Err(h.Call(t.Context(), "leases", []byte(`{"group":"g"}`)))) // the links still stand
		testkit.Must(t, client.Close())
		wantError(t, <-answers, hub.ErrClosed)
	})
}

// What may have been done is not done again: the caller has to know.
func TestACallIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		all.Add(2) // of which only one will come
		y := startMemory(t, memorySetup{groups: groups{all: &all}})
		client := y.dial(t, development.String(), hub.Config{})
		answers := make(chan error, 2)
		go func() {
			_, err := client.Hub("h").Call(context.Background(), "leases", []byte(`{"group":"together"}`))
			answers <- err
		}()
		synctest.Wait()
		hub.BreakConnection(client)
		err := <-answers
		if err == nil || errors.Is(err, hub.ErrClosed) {
			t.Errorf("answered %v", err)
		}
		all.Done() // panics, had there been another
		testkit.Must(t, testkit.Err(client.Hub("h").Call(t.Context(), "leases", []byte(`{"group":"g"}`))))
	})
}

func TestOnlyAYardCanBeCalled(t *testing.T) {
	bubble(t, memorySetup{}, func(t *testing.T, y *memoryYard, client *hub.Client) { // without the node
		h := client.Hub("h")
		wantError(t, testkit.Err(h.Call(t.Context(), "leases", []byte(`{"group":"g"}`))), hub.ErrNotYard)
	})
}

// R1: a token that is good for one group is enough for what the yard keeps of that group.
func TestCallsWithATokenForOneGroup(t *testing.T) {
	y := start(t)
	endpoint, _, _ := strings.Cut(y.ConnectionString(), ";")
	cs, err := auth.ParseConnectionString(y.ConnectionString())
	testkit.Must(t, err)
	resource := "sb://" + cs.Host() + "/h/ConsumerGroups/g"
	signed := endpoint + ";SharedAccessSignature=" + auth.Sign(resource, cs.Policy, cs.Key, time.Now().Add(time.Hour)) +
		";UseDevelopmentEmulator=true"
	for _, connection := range []string{signed, signed + ";EntityPath=H"} {
		client := y.dial(t, connection, hub.Config{})
		for range 2 {
			testkit.Must(t, testkit.Err(client.Hub("h").Call(t.Context(), "leases", []byte(`{"group":"g"}`))))
		}
		for _, other := range []string{"$Default", "g/sub", "G", "g/partitions/0"} {
			err := testkit.Err(client.Hub("h").Call(t.Context(), "leases", []byte(`{"group":"`+other+`"}`)))
			testkit.ErrorIs(t, err, hub.ErrUnauthorized, "group %s", other)
		}
	}
	// For another hub it is refused at once.
	_, err = hub.Dial(t.Context(), signed+";EntityPath=other", hub.Config{})
	testkit.ErrorIs(t, err, hub.ErrUnauthorized)
}

package natsstreams

import (
	"context"
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streamstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// open gives a storage over connections of its own that begin with a server, until the test ends.
func open(t testing.TB, servers *natstest.Servers, first int, yard string) *Storage {
	t.Helper()
	conns := Conns{
		servers.Dial(t, first, connect.Options()...), servers.Dial(t, first, connect.Options()...), servers.Dial(t, first, connect.Options()...),
	}
	s, err := Open(conns, Config{Yard: yard, Replicas: servers.Replicas})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Check(t, s.Close()) })
	return s
}

// yard gives a name of a new yard, whose streams are deleted when the test ends.
func yard(t testing.TB, servers *natstest.Servers) string {
	name := natstest.Yard()
	s := open(t, servers, 0, name)
	t.Cleanup(func() {
		ctx := context.Background()
		found, err := s.Names(ctx)
		for _, stream := range found {
			err = errors.Join(err, s.Delete(ctx, stream))
		}
		if err != nil {
			t.Logf("delete streams: %v", err)
		}
	})
	return name
}

// C1, C2: the contract, with one server and with three.
func TestContract(t *testing.T) {
	for what, n := range map[string]int{"one server": 1, "three servers": 3} {
		t.Run(what, func(t *testing.T) {
			servers := natstest.Shared(t, n)
			streamstest.Run(t, func(t *testing.T) (a, b streams.Storage) {
				name := yard(t, servers)
				return open(t, servers, 0, name), open(t, servers, n-1, name)
			})
		})
	}
}

package entries

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// auditAll audits a bucket of a store, as the servers have it.
func auditAll(t *testing.T, s *Store, js jetstream.JetStream, bucket string) []Damage {
	t.Helper()
	name := s.layout.stream(bucket)
	stream := testkit.Value(js.Stream(t.Context(), name))(t)
	a := NewAudits(s)[name]
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		if m, err := stream.GetMsg(t.Context(), seq); err == nil { // else it was replaced
			a.Take(seq, m.Subject, m.Data)
		}
	}
	found, more, err := a.End(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, more, 0, "found beyond those")
	return found
}

// C1: what a node has in memory is compared with what the servers have.
func TestAudit(t *testing.T) {
	servers := natstest.Shared(t, 1)
	conn := servers.Dial(t, 0)
	js := testkit.Value(jetstream.New(conn))(t)
	for name, tt := range map[string]struct {
		plant func(*Store)
		want  []Damage
	}{
		"nothing": {func(*Store) {}, nil},
		"another value": {
			func(s *Store) { s.replica.items["hubs/a"].value = []byte("other") },
			[]Damage{{Key: "hubs/a", Text: "this node has another value of the entry", Memory: true}},
		},
		"an entry that it does not know": {
			func(s *Store) { delete(s.replica.items, "hubs/a") },
			[]Damage{{Key: "hubs/a", Text: "this node does not know the entry", Memory: true}},
		},
		"an entry that it takes for deleted": {
			func(s *Store) { s.replica.items["hubs/a"].kind = deletion },
			[]Damage{{Key: "hubs/a", Text: "this node takes the entry for deleted", Memory: true}},
		},
		"an entry that nobody has stored": {
			func(s *Store) {
				s.replica.items["hubs/z"] = &item{message: message{seq: 3, kind: value, key: "hubs/z"}, bucket: definitions}
			},
			[]Damage{{Key: "hubs/z", Text: "this node has the entry as of message 3, and the servers have none that can be read", Memory: true}},
		},
		"a message of another subject": {
			func(s *Store) {
				encoded := message{kind: value, key: "hubs/b", value: []byte("b")}.encode()
				testkit.Must(t, testkit.Err(js.Publish(t.Context(), s.layout.subject(definitions, "hubs/c"), encoded)))
			},
			[]Damage{{Key: "hubs/b", Text: "the entry is under the subject \"SUBJECT\" of another"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, conn, yard(t, servers))
			set(t, s, "hubs/a", set(t, s, "hubs/a", 0, "first"), "second")
			testkit.Must(t, s.Delete(t.Context(), "hubs/gone", set(t, s, "hubs/gone", 0, "x")))
			s.replica.mu.Lock()
			tt.plant(s)
			s.replica.mu.Unlock()
			found := auditAll(t, s, js, definitions)
			testkit.MustThat(t, len(found) == len(tt.want), "found %+v", found)
			for i, d := range found {
				testkit.That(t, d.Key == tt.want[i].Key && d.Memory == tt.want[i].Memory && (!d.Memory || d.Text == tt.want[i].Text), "found %+v", d)
			}
		})
	}
}

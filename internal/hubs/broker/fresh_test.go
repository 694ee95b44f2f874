package broker

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// trace notes operations of a store, in order.
type trace struct {
	mu  sync.Mutex
	ops []metatest.Op // guarded by mu
}

func (tr *trace) note(op metatest.Op) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.ops = append(tr.ops, op)
	return nil
}

// order gives where the first operation of a kind comes whose key begins with prefix; -1: nowhere.
func (tr *trace) order(from int, kind metatest.OpKind, prefix string) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for i := max(from, 0); i < len(tr.ops); i++ {
		if tr.ops[i].Kind == kind && strings.HasPrefix(tr.ops[i].Key, prefix) {
			return i
		}
	}
	return -1
}

// C4: who creates something of a hub or group looks for a deletion after Fresh, and who deletes
// lists after Fresh: else both could miss each other on a store whose reads may be old.
func TestLooksForTheOtherSideAreFresh(t *testing.T) {
	type step struct {
		kind   metatest.OpKind
		prefix string
	}
	tests := []struct {
		name string
		do   func(t *testing.T, b *Broker)
		want []step
	}{
		{"a group is created", func(t *testing.T, b *Broker) {
			testkit.Must(t, testkit.Err(b.CreateGroup(t.Context(), "orders", "new")))
		}, []step{{metatest.OpSet, groupsPrefix}, {metatest.OpFresh, hubsPrefix}, {metatest.OpGet, hubsPrefix}}},
		{"a record was created", func(t *testing.T, b *Broker) {
			r := keepRecord(t, b, "orders", "billing", "lease/0")
			testkit.That(t, !b.GroupGone(t.Context(), r), "it is called gone")
		}, []step{
			{metatest.OpSet, RecordsPrefix}, {metatest.OpFresh, hubsPrefix}, {metatest.OpGet, hubsPrefix},
			{metatest.OpFresh, groupsPrefix}, {metatest.OpGet, groupsPrefix},
		}},
		{"a snapshot of producers is created", func(t *testing.T, b *Broker) {
			testkit.Must(t, testkit.Err(b.Producer(t.Context(), "orders", "0", ProducerConfig{})))
		}, []step{{metatest.OpSet, producersPrefix}, {metatest.OpFresh, hubsPrefix}, {metatest.OpGet, hubsPrefix}}},
		{"a group is deleted", func(t *testing.T, b *Broker) {
			testkit.Must(t, b.DeleteGroup(t.Context(), "orders", "billing"))
		}, []step{{metatest.OpSet, groupsPrefix}, {metatest.OpFresh, RecordsPrefix}, {metatest.OpList, RecordsPrefix}}},
		{"a hub is deleted", func(t *testing.T, b *Broker) {
			testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
		}, []step{
			{metatest.OpSet, hubsPrefix}, {metatest.OpFresh, groupsPrefix}, {metatest.OpList, groupsPrefix},
			{metatest.OpFresh, RecordsPrefix}, {metatest.OpList, RecordsPrefix},
			{metatest.OpFresh, producersPrefix}, {metatest.OpList, producersPrefix},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			mustCreate(t, b, "orders", 1, "billing")
			var tr trace
			y.Meta.Inject(tr.note)
			tt.do(t, b)
			var at []int
			from := -1
			for _, s := range tt.want {
				from = tr.order(from+1, s.kind, s.prefix)
				at = append(at, from)
			}
			if slices.Contains(at, -1) {
				t.Errorf("of %v found %v in %+v", tt.want, at, tr.ops)
			}
		})
	}
}

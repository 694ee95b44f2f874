package topics

import (
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C3: a topic, or a key of it, that another node has just made is found by a look; one machine looks
// nowhere.
func TestLookUpTopic(t *testing.T) {
	y := newYard(t)
	a := y.open(t, Config{})
	memory, ok := y.Memory.(*metatest.Memory)
	if !ok {
		t.Skip("servers decide how late a node is")
	}
	late := metatest.NewLateNode(memory)
	b := y.open(t, Config{Meta: late, Looks: looks.New(late)})
	mustTopic(t, a, "orders")
	testkit.ErrorIs(t, testkit.Err(b.Topic("orders")), ErrTopicNotFound, "before it looks")
	made := testkit.Value(b.LookUpTopic(t.Context(), "Orders"))(t)
	renewed := testkit.Value(a.RegenerateKey(t.Context(), "orders", Key1))(t)
	testkit.Equal(t, testkit.Value(b.Topic("orders"))(t).Key1, made.Key1, "the key before it looks")
	testkit.Equal(t, testkit.Value(b.LookUpTopic(t.Context(), "orders"))(t).Key1, renewed.Key1, "the key")
	testkit.ErrorIs(t, testkit.Err(b.LookUpTopic(t.Context(), "never")), ErrTopicNotFound)
	testkit.ErrorIs(t, testkit.Err(a.LookUpTopic(t.Context(), "never")), ErrTopicNotFound, "on one machine")
}

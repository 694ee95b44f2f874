package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

func nobody(holder) bool { return false }

// fromNode takes those of a node for gone.
func fromNode(id string) func(holder) bool { return func(h holder) bool { return h.Node.ID == id } }

// listed shows who is in a list: their ids, and in favour of whom they go.
func listed(all []holder) string {
	var shown []string
	for _, h := range all {
		text := h.ID
		if h.For != nil {
			text += fmt.Sprintf(">%s:%d", h.For.Name, h.For.Epoch)
		}
		shown = append(shown, text)
	}
	return strings.Join(shown, " ")
}

// H5 to H7, C4: what a newcomer makes of a slot's entry.
func TestSlotEntryAdmits(t *testing.T) {
	at := func(id, node string, epoch *int64) holder {
		return holder{ID: id, Node: cluster.Node{ID: node, Incarnation: "1"}, Name: id, Epoch: epoch}
	}
	low, high := new(int64(1)), new(int64(2))
	tests := []struct {
		name                    string
		there                   slotEntry
		newcomer                holder
		gone                    func(holder) bool
		holders, leaving, error string
	}{
		{"the first has it", slotEntry{}, at("n", "x", low), nobody, "n", "", ""},
		{"an equal epoch takes it", slotEntry{Holders: []holder{at("a", "y", low)}}, at("n", "x", low), nobody, "n", "a>n:1", ""},
		{"a lower one is refused", slotEntry{Holders: []holder{at("a", "y", high)}}, at("n", "x", low), nobody, "a", "", "epoch 2 is there"},
		{"so is one without", slotEntry{Holders: []holder{at("a", "y", low)}}, at("n", "x", nil), nobody, "a", "", "epoch 1 is there"},
		{"of a dead node nobody counts", slotEntry{Holders: []holder{at("a", "y", high)}}, at("n", "x", low), fromNode("y"), "n", "", ""},
		{"those without stay beside it", slotEntry{Holders: []holder{at("a", "y", nil)}}, at("n", "x", nil), nobody, "a n", "", ""},
		{"and all go for an epoch", slotEntry{Holders: []holder{at("a", "y", nil), at("b", "x", nil)}}, at("n", "x", low), nobody, "n", "a>n:1 b>n:1", ""},
		{"whom another has evicted is waited for, too",
			slotEntry{Holders: []holder{at("b", "y", low)}, Leaving: []holder{at("a", "z", low)}}, at("n", "x", low), nobody, "n", "a b>n:1", ""},
		{"but not where its node is dead",
			slotEntry{Holders: []holder{at("b", "y", low)}, Leaving: []holder{at("a", "z", low)}}, at("n", "x", low), fromNode("z"), "n", "b>n:1", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := string(encode(test.there))
			next, err := test.there.admit(test.newcomer, test.gone)
			if test.error == "" && err != nil || test.error != "" && (err == nil || !strings.Contains(err.Error(), test.error)) {
				t.Errorf("got %v, want %q", err, test.error)
			}
			testkit.Equal(t, listed(next.Holders), test.holders, "holders")
			testkit.Equal(t, listed(next.Leaving), test.leaving, "leaving")
			testkit.Equal(t, string(encode(test.there)), before, "what was there before")
		})
	}
}

// H5, H6, C4: whoever comes, goes and dies, the holders keep to the rule, nobody who lost the slot is
// forgotten while its node lives, and the entry comes back from the store as it was.
func TestSlotEntriesKeepToTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s slotEntry
		lost := map[string]holder{} // who had the slot, has not closed and may still read
		number := 0
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				number++
				node := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "node")
				h := holder{ID: fmt.Sprint(number), Node: cluster.Node{ID: node}}
				if rapid.Bool().Draw(t, "with epoch") {
					h.Epoch = new(rapid.Int64Range(0, 2).Draw(t, "epoch"))
				}
				before := s
				next, err := s.admit(h, nobody)
				if err != nil {
					return
				}
				s = next
				for _, old := range before.Holders {
					if _, stays := s.holder(old.ID); !stays {
						lost[old.ID] = old
					}
				}
			},
			"close": func(t *rapid.T) {
				all := slices.Concat(s.Holders, s.Leaving)
				if len(all) == 0 {
					return
				}
				h := rapid.SampledFrom(all).Draw(t, "who")
				delete(lost, h.ID)
				s, _ = s.without(func(other holder) bool { return other.ID == h.ID })
			},
			"die": func(t *rapid.T) {
				dead := fromNode(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "node"))
				s, _ = s.without(dead)
				for id, h := range lost {
					if dead(h) {
						delete(lost, id)
					}
				}
			},
			"disconnect": func(t *rapid.T) {
				for _, h := range s.Holders {
					if h.Epoch != nil {
						lost[h.ID] = h
					}
				}
				s, _ = s.disconnect(nobody)
			},
			"": func(t *rapid.T) {
				with, without := 0, 0
				for _, h := range s.Holders {
					if h.Epoch != nil {
						with++
					} else {
						without++
					}
				}
				if with > 1 || without > MaxReceivers || with > 0 && without > 0 {
					t.Fatalf("%d with epoch and %d without have the slot", with, without)
				}
				for id := range lost {
					if _, waited := findHolder(s.Leaving, id); !waited {
						t.Fatalf("nobody waits for %s", id)
					}
				}
				back, err := decodeSlot(meta.Entry{Value: encode(s)})
				if err != nil || string(encode(back)) != string(encode(s)) {
					t.Fatalf("%+v came back as %+v, %v", s, back, err)
				}
			},
		})
	})
}

func TestSlotKeys(t *testing.T) {
	for _, at := range []slotID{{"orders-abc", "$Default", "0"}, {"orders-abc", "a/b", "31"}} {
		if got, ok := slotOfKey(at.key()); !ok || got != at || meta.CheckKey(at.key()) != nil {
			t.Errorf("%+v came back as %+v", at, got)
		}
	}
	if _, ok := slotOfKey("places/x"); ok {
		t.Error("what is no slot passes for one")
	}
}

// FuzzDecodeSlot: whatever the store has, it is read or refused.
func FuzzDecodeSlot(f *testing.F) {
	f.Add([]byte(`{"holders":[{"id":"a","node":{"id":"x","incarnation":"1"},"term":3,"epoch":1}],"leaving":[{"id":"b","for":{"epoch":2}}]}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		s, err := decodeSlot(meta.Entry{Key: "places/l/g/0", Value: value})
		if err != nil {
			return
		}
		for _, h := range slices.Concat(s.Holders, s.Leaving) {
			_ = h.evicted().Error()
		}
	})
}

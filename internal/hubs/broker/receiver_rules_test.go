package broker

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/testkit"
)

func at(name string, epoch int64) claim { return claim{name, &epoch} }

func plain(names ...string) []claim {
	claims := make([]claim, len(names))
	for i, name := range names {
		claims[i].name = name
	}
	return claims
}

// H5, H6, H7: the whole table of who may read.
func TestWhoMayRead(t *testing.T) {
	five := plain("a", "", "c", "d", "e")
	tests := []struct {
		what     string
		present  []claim
		newcomer claim
		evict    []int
		refusal  error
	}{
		{"any epoch is accepted where nobody is", nil, at("new", 0), nil, nil},
		{"a negative one too", nil, at("new", -7), nil, nil},
		{"and one without epoch", nil, claim{name: "new"}, nil, nil},
		{"a higher epoch takes the place", []claim{at("old", 1)}, at("new", 2), []int{0}, nil},
		{"an equal one too", []claim{at("old", 1)}, at("new", 1), []int{0}, nil},
		{"also when it is zero", []claim{at("old", 0)}, at("new", 0), []int{0}, nil},
		{"a lower one is refused", []claim{at("old", 2)}, at("new", 1), nil,
			&EpochError{Name: "new", Epoch: new(int64(1)), OldName: "old", OldEpoch: 2}},
		{"an epoch evicts one without", plain("old"), at("new", 0), []int{0}, nil},
		{"and all of them", five, at("new", 0), []int{0, 1, 2, 3, 4}, nil},
		{"one without epoch is refused while one with epoch is there", []claim{at("old", 3)}, claim{name: "new"}, nil,
			&EpochError{Name: "new", OldName: "old", OldEpoch: 3}},
		{"also when that is zero", []claim{at("", 0)}, claim{}, nil, &EpochError{}},
		{"a second without epoch is accepted", plain("a"), claim{}, nil, nil},
		{"and a fifth", five[:4], claim{name: "new"}, nil, nil},
		{"a sixth is refused", five, claim{name: "new"}, nil,
			&ReceiverQuotaError{Limit: 5, Names: []string{"a", "", "c", "d", "e"}}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			evict, refusal := admit(tt.present, tt.newcomer)
			testkit.Slices(t, evict, tt.evict, "evicts")
			if diff := cmp.Diff(tt.refusal, refusal); diff != "" {
				t.Errorf("refused with (-want +got):\n%s", diff)
			}
		})
	}
}

// H5, H6, H7: the errors say who is in the way and what to do.
func TestReceiverErrorsNameTheOther(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"an epoch too low", &EpochError{Name: "new", Epoch: new(int64(1)), OldName: "old", OldEpoch: 7}, []string{`"new"`, "epoch 1", `"old"`, "epoch 7", "as high or higher"}},
		{"no epoch beside one", &EpochError{OldEpoch: 7}, []string{"without epoch", "epoch 7", "use an epoch too"}},
		{"evicted", &EvictedError{Name: "old", Epoch: new(int64(3)), NewName: "new", NewEpoch: 4}, []string{`"old"`, "epoch 3", `"new"`, "epoch 4"}},
		{"too many", &ReceiverQuotaError{Limit: 5, Names: []string{"a", ""}}, []string{"5", `"a"`, `""`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, want := range tt.want {
				if !strings.Contains(tt.err.Error(), want) {
					t.Errorf("%T says %q, without %q", tt.err, tt.err, want)
				}
			}
		})
	}
}

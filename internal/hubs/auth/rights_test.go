package auth

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestRightsHas(t *testing.T) {
	tests := []struct {
		what       string
		have, need Rights
		want       bool
	}{
		{"a right has itself", Send, Send, true},
		{"one is not the other", Send, Listen, false},
		{"both have each", Send | Listen, Listen, true},
		{"one is not both", Listen, Send | Listen, false},
		{"Manage implies Send", Manage, Send, true},
		{"Manage implies Listen", Manage, Listen, true},
		{"both do not make Manage", Send | Listen, Manage, false},
		{"nothing is had by all", Send, 0, true},
		{"nothing has nothing", 0, Send, false},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, tt.have.Has(tt.need), tt.want)
		})
	}
}

func TestRightsAsText(t *testing.T) {
	tests := []struct {
		rights Rights
		names  []string
		text   string
	}{
		{0, []string{}, "none"},
		{Send, []string{"Send"}, "Send"},
		{Listen, []string{"Listen"}, "Listen"},
		{Metrics, []string{"Metrics"}, "Metrics"},
		{Send | Metrics, []string{"Send", "Metrics"}, "Send,Metrics"},
		{Manage | Metrics, []string{"Manage"}, "Manage"},
		{Send | Listen, []string{"Send", "Listen"}, "Send,Listen"},
		{Manage, []string{"Manage"}, "Manage"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			testkit.Slices(t, tt.rights.Names(), tt.names, "names")
			testkit.Equal(t, tt.rights.String(), tt.text, "text")
		})
	}
}

func TestParseRights(t *testing.T) {
	tests := []struct {
		what string
		list []string
		want Rights // 0: refused
	}{
		{"one", []string{"Listen"}, Listen},
		{"that of who scrapes", []string{"metrics"}, Metrics},
		{"in any case", []string{"sEND", "LISTEN"}, Send | Listen},
		{"as Azure lists those of Manage", []string{"Listen", "Manage", "Send"}, Manage},
		{"Manage alone is all", []string{"manage"}, Manage},
		{"twice is once", []string{"Send", "Send"}, Send},
		{"none is refused", nil, 0},
		{"an unknown one is refused", []string{"Send", "Read"}, 0},
		{"an empty one is refused", []string{""}, 0},
		{"a look-alike is refused", []string{"ſend"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got, err := ParseRights(tt.list)
			if got != tt.want || (err == nil) != (tt.want != 0) {
				t.Errorf("got %v, %v", got, err)
			}
			if err != nil && !errors.Is(err, ErrRights) {
				t.Errorf("%v does not wrap ErrRights", err)
			}
		})
	}
}

// Whatever is written is read back as it was.
func TestRightsThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rights := rapid.SampledFrom([]Rights{Send, Listen, Send | Listen, Manage}).Draw(t, "rights")
		testkit.Equal(t, testkit.Value(ParseRights(rights.Names()))(t), rights)
	})
}

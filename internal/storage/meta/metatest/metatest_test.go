package metatest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
)

// brokenManner names the store that this test binary runs the suite against when a
// test has started it anew, for the suite to fail.
const brokenManner = "EVENTYARD_METATEST_BROKEN"

// What the contract leaves to a store passes, whatever it chooses.
func TestEveryChoiceOfAStorePasses(t *testing.T) {
	tests := []struct {
		name   string
		manner metatest.Manner
	}{
		{"the present state is that of the first answer", metatest.Manner{}},
		{"the present state is fixed when the watch begins", metatest.Manner{FixesStateAtWatch: true}},
		{"the present state tells deletions of before", metatest.Manner{NotifiesOldDeletions: true}},
		{"it is fixed when the watch begins and tells deletions", metatest.Manner{FixesStateAtWatch: true, NotifiesOldDeletions: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			metatest.Run(t, func(*testing.T) meta.Store { return metatest.NewModel(test.manner) })
			metatest.RunDurable(t, func(*testing.T) (meta.Store, func() meta.Store) {
				s := metatest.NewModel(test.manner)
				return s, func() meta.Store { return s }
			})
		})
	}
}

// A store that breaks a promise fails the test that is named for it.
func TestBrokenStoresAreFound(t *testing.T) {
	tests := []struct {
		name   string
		manner metatest.Manner
		found  string // the test that must fail
	}{
		{"the revision of a deletion is taken", metatest.Manner{TakesDeletionRevision: true}, "the revision of a deletion is no expectation"},
		{"a read after a conflict is stale", metatest.Manner{LagsAfterConflict: true}, "who lost a race sees what won it"},
		{"a new watch is stale", metatest.Manner{LagsAtWatch: true}, "a watch tells the present state first"},
	}
	for _, test := range tests {
		if os.Getenv(brokenManner) == test.name {
			metatest.Run(t, func(*testing.T) meta.Store { return metatest.NewModel(test.manner) })
			return
		}
	}
	if os.Getenv(brokenManner) != "" {
		return
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inSuite := strings.ReplaceAll(test.found, " ", "_")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBrokenStoresAreFound$/^"+inSuite+"$", "-test.v")
			cmd.Env = append(os.Environ(), brokenManner+"="+test.name)
			output, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(output), "--- FAIL: TestBrokenStoresAreFound/"+inSuite) {
				t.Errorf("%q did not fail (%v):\n%s", test.found, err, output)
			}
		})
	}
}

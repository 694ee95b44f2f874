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
		manner manner
	}{
		{"the present state is that of the first answer", manner{}},
		{"the present state is fixed when the watch begins", manner{fixesStateAtWatch: true}},
		{"the present state tells deletions of before", manner{notifiesOldDeletions: true}},
		{"it is fixed when the watch begins and tells deletions", manner{fixesStateAtWatch: true, notifiesOldDeletions: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			metatest.Run(t, func(*testing.T) meta.Store { return newModel(test.manner) })
			metatest.RunDurable(t, func(*testing.T) (meta.Store, func() meta.Store) {
				s := newModel(test.manner)
				return s, func() meta.Store { return s }
			})
		})
	}
}

// A store that breaks a promise fails the test that is named for it.
func TestBrokenStoresAreFound(t *testing.T) {
	tests := []struct {
		name   string
		manner manner
		found  string // the test that must fail
	}{
		{"the revision of a deletion is taken", manner{takesDeletionRevision: true}, "the revision of a deletion is no expectation"},
		{"a read after a conflict is stale", manner{lagsAfterConflict: true}, "who lost a race sees what won it"},
		{"a new watch is stale", manner{lagsAtWatch: true}, "a watch tells the present state first"},
	}
	for _, test := range tests {
		if os.Getenv(brokenManner) == test.name {
			metatest.Run(t, func(*testing.T) meta.Store { return newModel(test.manner) })
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

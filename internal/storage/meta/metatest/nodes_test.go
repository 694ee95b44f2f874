package metatest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
)

// Two nodes that are as late as they may be pass, as long as Fresh is what it should be.
func TestLateNodesPass(t *testing.T) {
	metatest.RunNodes(t, func(*testing.T) (here, there meta.Store) {
		s := metatest.NewMemory()
		return metatest.NewLateNode(s), metatest.NewLateNode(s)
	})
}

// Nodes whose Fresh does nothing are found.
func TestNodesThatAreNeverFreshAreFound(t *testing.T) {
	const marker = "never fresh"
	if os.Getenv(brokenManner) == marker {
		metatest.RunNodes(t, func(*testing.T) (here, there meta.Store) {
			s := metatest.NewMemory()
			return metatest.NewBrokenNode(s), metatest.NewBrokenNode(s)
		})
		return
	}
	if os.Getenv(brokenManner) != "" {
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNodesThatAreNeverFreshAreFound$", "-test.v")
	cmd.Env = append(os.Environ(), brokenManner+"="+marker)
	output, err := cmd.CombinedOutput()
	for _, found := range []string{"what_was_acknowledged_here_is_read_there_after_Fresh", "of_two_who_write_and_then_look_afresh_at_least_one_sees_the_other"} {
		if err == nil || !strings.Contains(string(output), "--- FAIL: TestNodesThatAreNeverFreshAreFound/"+found) {
			t.Errorf("%s did not fail (%v):\n%s", found, err, output)
		}
	}
}

// A late node passes the rest of the contract, too: what it saw acknowledged it reads.
func TestALateNodeKeepsTheContract(t *testing.T) {
	metatest.Run(t, func(*testing.T) meta.Store { return metatest.NewLateNode(metatest.NewMemory()) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := metatest.NewLateNode(metatest.NewMemory()).Fresh(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

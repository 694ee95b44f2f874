package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// TestEveryMeasurementRuns keeps the programs from rotting. It says nothing of speed.
func TestEveryMeasurementRuns(t *testing.T) {
	for _, m := range measurements(false) {
		t.Run(m.name, func(t *testing.T) { measureShortly(t, m.name) })
	}
}

// The same for those of several nodes, in one run, which builds the program once.
func TestEveryMeasurementOfNodesRuns(t *testing.T) {
	measureShortly(t, strings.Join(names(true), ","), "-cluster")
}

func measureShortly(t *testing.T, name string, more ...string) {
	t.Helper()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), append(more, "-only", name, "-dir", dir,
		"-seconds", "0.05", "-rounds", "1", "-start-gib", "0.02"), &stdout, &stderr)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if !strings.Contains(stdout.String(), "| figure | median |") || strings.Contains(stdout.String(), "NaN") {
		t.Errorf("the report is\n%s", stdout.String())
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestCommandLinesThatMakeNoSenseAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"an unknown measurement", []string{"-only", "nothing"}},
		{"no rounds", []string{"-rounds", "0"}},
		{"no time", []string{"-seconds", "0"}},
		{"a part of the figures is not to be kept", []string{"-only", "read", "-write", "page.md"}},
		{"an argument that is no flag", []string{"read"}},
		{"one of a single machine among those of nodes", []string{"-cluster", "-only", "read"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := run(t.Context(), tt.args, io.Discard, io.Discard); err == nil {
				t.Error("got no error")
			}
		})
	}
}

package testkit

import (
	"fmt"
	"io"
	"testing"
)

func TestADifferenceIsReported(t *testing.T) {
	wrapped := fmt.Errorf("read: %w", io.EOF)
	for name, tt := range map[string]struct {
		compare func(T)
		want    string // the report; empty where there is none
	}{
		"equal values":             {func(d T) { Equal(d, 1, 1) }, ""},
		"other values":             {func(d T) { Equal(d, 1, 2) }, "got 1, want 2"},
		"texts are quoted":         {func(d T) { Equal(d, "a", "b", "100%% of %s", "x") }, `100% of x: "a", want "b"`},
		"other values, fatal":      {func(d T) { MustEqual(d, 1, 2) }, "fatal: got 1, want 2"},
		"equal values, fatal":      {func(d T) { MustEqual(d, 1, 1) }, ""},
		"nil equals empty":         {func(d T) { Slices(d, nil, []int{}) }, ""},
		"other elements":           {func(d T) { Slices(d, []int{1}, []int{2}) }, "got [1], want [2]"},
		"other elements, fatal":    {func(d T) { MustSlices(d, []int{1}, nil) }, "fatal: got [1], want []"},
		"the same, deep":           {func(d T) { Deep(d, []int{1}, []int{1}) }, ""},
		"nil differs from empty":   {func(d T) { Deep(d, []int(nil), []int{}) }, "got [], want []"},
		"an error that is within":  {func(d T) { ErrorIs(d, wrapped, io.EOF) }, ""},
		"another error":            {func(d T) { ErrorIs(d, io.EOF, wrapped, "it") }, "it: EOF, want read: EOF"},
		"another error, fatal":     {func(d T) { MustErrorIs(d, nil, io.EOF) }, "fatal: got <nil>, want EOF"},
		"what holds":               {func(d T) { That(d, true, "it"); MustThat(d, true, "it") }, ""},
		"what does not":            {func(d T) { That(d, false, "%d are left", 2) }, "2 are left"},
		"what does not, fatal":     {func(d T) { MustThat(d, false, "%d are left", 2) }, "fatal: 2 are left"},
		"the error beside a value": {func(d T) { ErrorIs(d, Err(1, wrapped), io.EOF) }, ""},
		"no difference":            {func(d T) { Diff(d, []int{1}, []int{1}) }, ""},
		"no difference, fatal":     {func(d T) { MustDiff(d, 1, 1) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := &double{}
			tt.compare(d)
			if got := fmt.Sprint(d.failures); got != "["+tt.want+"]" {
				t.Errorf("reported %s, want [%s]", got, tt.want)
			}
		})
	}
}

func TestAStructureThatDiffersIsReported(t *testing.T) {
	for name, compare := range map[string]func(T, any, any){
		"goes on": func(d T, a, b any) { Diff(d, a, b) }, "ends": func(d T, a, b any) { MustDiff(d, a, b) },
	} {
		t.Run(name, func(t *testing.T) {
			d := &double{}
			if compare(d, []int{1}, []int{2}); len(d.failures) != 1 {
				t.Errorf("reported %q", d.failures)
			}
		})
	}
}

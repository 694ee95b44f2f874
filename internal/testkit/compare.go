package testkit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"
)

// The functions here compare what a test got with what it wants. They take a format and its
// arguments last, which say what was compared; without them the values speak for themselves.

// Equal reports a value other than the wanted one.
func Equal[V comparable](t T, got, want V, what ...any) {
	if got != want {
		t.Helper()
		t.Error(differ(got, want, what))
	}
}

// MustEqual ends the test at a value other than the wanted one.
func MustEqual[V comparable](t T, got, want V, what ...any) {
	if got != want {
		t.Helper()
		t.Fatal(differ(got, want, what))
	}
}

// Slices reports a slice with other elements than the wanted ones; nil equals empty.
func Slices[S ~[]E, E comparable](t T, got, want S, what ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Error(differ(got, want, what))
	}
}

// MustSlices ends the test at a slice with other elements than the wanted ones.
func MustSlices[S ~[]E, E comparable](t T, got, want S, what ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Fatal(differ(got, want, what))
	}
}

// Deep reports a value that is not deeply equal to the wanted one; nil differs from empty.
func Deep(t T, got, want any, what ...any) {
	if !reflect.DeepEqual(got, want) {
		t.Helper()
		t.Error(differ(got, want, what))
	}
}

// That reports, in the words of the format, that something does not hold.
func That(t T, holds bool, format string, args ...any) {
	if !holds {
		t.Helper()
		t.Error(fmt.Sprintf(format, args...))
	}
}

// MustThat ends the test where something does not hold.
func MustThat(t T, holds bool, format string, args ...any) {
	if !holds {
		t.Helper()
		t.Fatal(fmt.Sprintf(format, args...))
	}
}

// ErrorIs reports an error of another kind than the wanted one.
func ErrorIs(t T, err, want error, what ...any) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Error(differ(err, want, what))
	}
}

// MustErrorIs ends the test at an error of another kind than the wanted one.
func MustErrorIs(t T, err, want error, what ...any) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Fatal(differ(err, want, what))
	}
}

// Diff reports where the wanted value and the one there is differ.
func Diff(t T, want, got any, options ...cmp.Option) {
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Helper()
		t.Error("-want +got\n", diff)
	}
}

// MustDiff ends the test where the wanted value and the one there is differ.
func MustDiff(t T, want, got any, options ...cmp.Option) {
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Helper()
		t.Fatal("-want +got\n", diff)
	}
}

func differ(got, want any, what []any) string {
	verb := "%+v"
	switch got.(type) {
	case string, []byte, []string:
		verb = "%q"
	}
	label := "got "
	if len(what) > 0 {
		label = labelled(what)
	}
	return label + fmt.Sprintf(verb+", want "+verb, got, want)
}

// labelled is the text of a format and its arguments, if there are any, before a report.
func labelled(what []any) string {
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf(what[0].(string), what[1:]...) + ": "
}

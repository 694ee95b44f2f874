package panics

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

var errBad = errors.New("bad event")

// F2: a panic is an error like any other, that tells its value and its place.
func TestCall(t *testing.T) {
	for _, test := range []struct {
		name string
		call func() error
		want string // of the error's text; empty: none
	}{
		{"nothing happens", func() error { return nil }, `^$`},
		{"an error", func() error { return errBad }, `^bad event$`},
		{"a panic with an error", func() error { panic(errBad) }, `^panicked at panics/panics_test\.go:\d+: bad event$`},
		{"a panic with a value", func() error { panic(7) }, `^panicked at panics/panics_test\.go:\d+: 7$`},
		{"a panic of the runtime's", func() error { return []error{}[len(errBad.Error())] }, `^panicked at panics/panics_test\.go:\d+: runtime error: index out of range`},
		{"a panic with nil", func() error { panic(nil) }, `^panicked at panics/panics_test\.go:\d+: panic called with nil argument`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Call(test.call)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !regexp.MustCompile(test.want).MatchString(text) {
				t.Errorf("told as %q", text)
			}
			if p, ok := errors.AsType[*PanicError](err); ok && !strings.Contains(string(p.Stack), "panics_test.go") {
				t.Errorf("its stack is %s", p.Stack)
			}
		})
	}
	if err := Call(func() error { panic(errBad) }); !errors.Is(err, errBad) {
		t.Errorf("%v is not what was panicked with", err)
	}
	if text := (&PanicError{Value: 7}).Error(); text != "panicked: 7" {
		t.Errorf("without a place it is told as %q", text)
	}
}

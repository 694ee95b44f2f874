package config

import (
	"slices"
	"strings"
)

// Problem is one thing wrong with the configuration, and where it was said.
type Problem struct {
	// Origin is the file with line and column, the flag or the variable; empty for a
	// configuration that came from none of them.
	Origin string
	// Key is the setting, empty where the file as a whole is wrong.
	Key    string
	Reason string
}

func (p *Problem) Error() string {
	text := p.Reason
	for _, before := range []string{p.Key, p.Origin} {
		if before != "" {
			text = before + ": " + text
		}
	}
	return text
}

// flagMark begins the origin of what was given on the command line.
const flagMark = "--"

// BlamesFlag tells whether an error of Load is, or is also, about a flag's value.
func BlamesFlag(err error) bool {
	switch e := err.(type) {
	case *Problem:
		return strings.HasPrefix(e.Origin, flagMark)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), BlamesFlag)
	}
	return false
}

package main

import (
	"time"

	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/spf13/pflag"
)

// durationFlag is the type of flags that take durations.
const durationFlag = "duration"

// addDuration adds a flag that is written as durations are in definitions and in files of settings, with days as well.
func addDuration(flags *pflag.FlagSet, to *time.Duration, name string, usual time.Duration, help string) {
	*to = usual
	flags.Var((*quantity.Duration)(to), name, help)
	if usual == 0 { // for ever, or none: help says it in words
		flags.Lookup(name).DefValue = ""
	}
}

// Package soak holds the checks that take long, or need rights which a test run has not: `make
// soak` runs them, `go test ./...` skips them, or runs a small form of them. What cannot be run on
// a machine is skipped with the reason. It has no code of its own.
package soak

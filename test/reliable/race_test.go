//go:build race

package reliable

// raceFlags build a yard that is watched as its workers are.
var raceFlags = []string{"-race"}

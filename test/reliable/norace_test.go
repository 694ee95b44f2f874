//go:build !race

package reliable

var raceFlags []string

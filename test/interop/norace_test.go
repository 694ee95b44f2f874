//go:build linux && !race

package interop

const raceDetector = false

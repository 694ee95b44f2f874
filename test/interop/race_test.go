//go:build linux && race

package interop

const raceDetector = true

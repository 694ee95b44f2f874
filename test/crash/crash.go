// Package crash holds the test that kills the real program with SIGKILL in mid-load, many
// times, and compares what is there afterwards with what was acknowledged. The power cuts
// that no test can order from a real machine are in internal/storage/disk.
package crash

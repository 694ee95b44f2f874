// Package setaside is what dead letters and poison events have in common: events that lie in a log,
// apart from those that went well, until somebody looks at them, redrives or purges them.
//
// What became of them is not in the log. Marks say by number which were redriven, and when, and
// which were purged; they are ranges in entries of the meta store, one for every LeafSize numbers
// (marks.go). The two users began apart and store their entries under other keys and in other
// words, which stay: so each has a codec of its own.
//
// Redriving is at least once: what was sent on is marked after that (redrive.go).
package setaside

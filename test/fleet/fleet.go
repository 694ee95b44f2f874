// Package fleet holds the test of a processor as it is run in earnest: a yard and many
// workers, each a process of its own, some of them killed. It has no code of its own.
package fleet

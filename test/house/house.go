// Package house holds the tests of the house's shape: who may import whom, and that
// every package says what it is for. It has no code of its own.
package house

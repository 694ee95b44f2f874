// Package reliable holds the tests of functions as they are run in earnest: a yard, workers and a
// mail server, each reached over the network, most of them processes of their own, all of them
// killed at the worst moments. It has no code of its own.
package reliable

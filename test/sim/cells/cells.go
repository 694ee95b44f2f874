// Package cells holds simulations of a yard that has outgrown one NATS cluster: several cells, each
// a cluster with its nodes, and a directory that says which cell a hub is in. No cell is built;
// these are plain models on paper, one file for each question:
//
//	hubs       how full cells get, how often a hub must move, and what a move copies
//	lost       what the clients of a lost cell do to it when it comes back
//	webhooks   how a backlog of webhooks drains, and how other subscriptions fare meanwhile
//	directory  what calls meet while a hub moves and nodes do not know it yet
//
// A seed makes a run, and the same run each time. Tests fail only for what follows from a rule,
// whatever chance does: nothing is lost or stored twice, what is moved fits, no work is done for
// those who have left. Everything else is printed, not judged. docs/internals/scale.md has the
// figures of a large run, where the constants are from, and what follows. The package has no code of
// its own.
package cells

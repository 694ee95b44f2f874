// Package nodes holds the simulation of a yard of three nodes: three brokers over simulated servers
// (internal/storage/jetstream/model), and around them senders, idempotent producers, processors and
// receivers with epochs, each connected to one node or another. For a simulated while nodes are killed,
// stopped, frozen and cut off from the servers, which lose their majority, lose answers, and answer with
// what is old. Then there is peace, in which everything has to go on by itself. It runs under
// testing/synctest with no socket and no file. It has no code of its own.
//
// One number, the seed, makes a run: what happens when, to whom. The product draws numbers of its own,
// and goroutines come in any order, so that a run goes much the same way again, but not exactly: a seed
// that failed is worth several tries (-count=20).
//
// What is real: logs and entries as they are on NATS, presence, the broker with its slots and ledgers,
// the registry of groups, the readers of functions, the processor. What is simulated: the servers, the
// requests between nodes, and the connections of clients. A client's connection ends with its node, and
// a client leaves a node that is silent for long.
//
// The judge is told of every entry at the moment the servers store it, which is the order that decides,
// of what senders were told, and of all that somebody reads or handles. In the end it compares all of it
// with what every node, and one that was never there before, reads.
package nodes

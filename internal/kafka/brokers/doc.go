// Package brokers knows the nodes of a yard as Kafka's clients see them: each is a broker with a small
// number and an address for each listener.
//
// Which nodes live, and where clients find them, is package cluster's to know: each node announces its
// addresses with its presence while its listeners serve. Numbers are in one entry, which every node
// takes its own from by compare-and-set (see numbers). A broker is a live node that has announced an
// address and has a number in that entry, as far as this node knows it: so no view has two brokers of
// one number, whatever a node believes its own to be.
//
// A client turns to the broker of a partition, or of a group, which a hash of all brokers chooses
// (Choose): every node gives the same answer, and when one leaves only what was its moves. Nothing
// depends on it that must not be wrong: any node takes any Produce and any Fetch, and a group's
// coordinator has to hold the group's entry.
//
// A yard on one machine has one broker, 1, and no entry.
package brokers

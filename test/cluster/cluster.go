// Package cluster holds the tests of a yard of three nodes on three NATS servers, all processes of
// their own: official clients publish and read while nodes and servers are killed, frozen and cut
// off, and in the end what is there is compared with what was acknowledged.
//
// A run is chosen by a seed. `make test` has one fixed run, `make chaos` an hour of random ones.
package cluster

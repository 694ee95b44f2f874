// Package cluster holds the tests of a yard of three nodes on three or five NATS servers, which run by
// themselves, or on three inside the nodes. All are processes of their own: official clients, processors,
// functions and webhooks publish and read while nodes and servers are killed, frozen and cut off and their
// disks are full, and in the end what is there is compared with what was acknowledged.
//
// A host is cut off by network namespaces as root, and by proxies in the test process where they are
// refused; with the flag -proxies always.
//
// `make cluster`, which is a part of `make test`, has one fixed run of each kind, of one or two minutes,
// and one in which the yard is backed up and restored while processes are killed; `make chaos` has an hour
// of random ones.
package cluster

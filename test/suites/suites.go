// Package suites runs the tests of services on the engine of several nodes, over real servers. It is
// `make test-nats`: with -suites it starts three NATS servers and has go test run the packages that
// -suites.packages names, with EVENTYARD_TEST_ENGINE=nats; see package storagetest.
package suites

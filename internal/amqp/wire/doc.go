// Package wire is the AMQP 1.0 codec: bytes in, values out, and back. It is pure: no
// I/O, no clock, no state beyond a read position, and no reflection.
//
// Section numbers in comments are those of the OASIS AMQP 1.0 standard: part 1 is the
// type system, part 3 the message format. The layers, each on top of the one before:
//
//	code.go, value.go      constructors, and the Go types that stand for AMQP's
//	append*.go             encoding; every function appends to a slice and returns it
//	reader*.go             decoding from a slice, value by value
//	descriptor.go          the descriptors of described types
//	sections.go            an encoded message taken apart without decoding it
//	normalize.go           a sender's message made into the form that the log keeps
//
// Whoever sends us bytes is a stranger. Reading never panics, nests no deeper than
// [MaxDepth], and allocates in proportion to the bytes that are there, whatever their
// length fields say.
package wire

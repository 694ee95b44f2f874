// Package wire is the AMQP 1.0 codec: bytes in, values out, and back. It is pure: no
// I/O, no clock, no state beyond a read position, and no reflection.
//
// Section numbers in comments are those of the OASIS AMQP 1.0 standard: part 1 is the
// type system, part 2 the transport, part 3 the message format, part 5 security. The
// layers, each on top of the one before:
//
//	code.go, value.go      constructors, and the Go types that stand for AMQP's
//	append*.go             encoding; every function appends to a slice and returns it
//	reader*.go             decoding from a slice, value by value
//	descriptor*.go         the descriptors of described types, and their names
//
//	frame.go               heads of frames, and of the layers of a connection
//	performative.go        what the performatives have in common; _fields.go reads lists
//	performative_*.go      each performative with its opposite; errors, delivery states
//	terminus.go            source and target, the two ends of a link
//	sasl.go                what is said before there is a connection
//
//	sections.go            an encoded message taken apart without decoding it
//	annotations.go         the names of the hub's own annotations
//	own.go                 what a sender has put under those names
//	normalize.go           a sender's message made into the form that the log keeps
//	delivery.go            that form made into what a consumer gets
//
// Whoever sends us bytes is a stranger. Reading never panics, nests no deeper than [MaxDepth], and
// allocates in proportion to the bytes that are there, whatever their length fields say.
package wire

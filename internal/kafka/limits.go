package kafka

import "time"

// What bounds a connection besides its Config. Each is far from what a client meets that behaves.
const (
	// maxRequestBytes is the most that Config.MaxRequestBytes may say: sizes are of 31 bits.
	maxRequestBytes = 1 << 30
	// maxBodyBytes is the largest request but for Produce. A group's assignments and the offsets of tens of
	// thousands of partitions fit.
	maxBodyBytes = 4 << 20
	// freeRequestBytes is what a request takes that is not counted.
	freeRequestBytes = 1 << 10
	// maxUnderWay is how many requests of a connection may be under way: then it is not read on. Kafka
	// has one; clients that pipeline send five.
	maxUnderWay = 64
	// maxTextBytes is the longest string, as older versions have it, and maxTags how many tagged fields a
	// structure may have: clients send none that we know nothing of.
	maxTextBytes = 1<<15 - 1
	maxTags      = 8

	// smallReadBytes is the buffer that a connection reads with while little comes in, and all that an idle
	// one has; largeReadBytes is what it borrows.
	smallReadBytes = 4 << 10
	largeReadBytes = 64 << 10
	// writeBufferBytes of an answer wait for more of it; writeBytes is how much is written at once.
	writeBufferBytes = 16 << 10
	writeBytes       = 256 << 10
	// writeGrace is how long a client may take for a piece that it is sent, however scarce memory is.
	writeGrace = time.Second
	// maxKeptBytes is how much of a Produce request may wait to be stored: then no more of it is read.
	// producedBytes is what is counted for what is said of one partition, in the answer and before.
	maxKeptBytes  = 16 << 20
	producedBytes = 512
	// holdStepBytes is by how much the memory of a Produce request grows at a time.
	holdStepBytes = 64 << 10
	// maxPooledBytes is the largest buffer that is kept for the next user.
	maxPooledBytes = 2 << 20

	// closeWait is how long a client may take to hear why it is sent away, and drainWait what is under way
	// may take when the server stops.
	closeWait = 2 * time.Second
	drainWait = 5 * time.Second
)

// What a stranger may have: a client that has not shown who it is. What is held for it is taken from the
// account of strangers (package admission).
const (
	// strangerRequestBytes is the largest request: the largest token fits.
	strangerRequestBytes = 64 << 10
	// strangerBytes is how much it may send in all.
	strangerBytes = 1 << 20
	// strangerRequestCost is the least that a request counts there: its answer costs the yard as much, however small it is.
	strangerRequestCost = 256
	// strangerReads is how often it is read from at once, some times what clients need to show who they are, and strangerRest
	// how long it waits before each time after that. A request that came with the one before it counts as a read.
	strangerReads = 64
	strangerRest  = 5 * time.Millisecond
)

// Why a client was refused something: the label of the metric.
const (
	reasonConnections = "connections"   // no permit for one more
	reasonTLS         = "tls"           // the handshake failed
	reasonAuth        = "auth"          // SASL
	reasonAuthTimeout = "auth_timeout"  // it has not shown who it is in time
	reasonExpired     = "expired"       // its token has ended
	reasonIdle        = "idle"          // nothing came for long
	reasonRead        = "read_timeout"  // a request does not come on
	reasonWrite       = "write_timeout" // the client takes nothing
	reasonSize        = "size"          // a request beyond the limits
	reasonMalformed   = "malformed"     // a request that cannot be decoded
	reasonProtocol    = "protocol"      // a request that is not offered, or not allowed where it came
	reasonStranger    = "stranger"      // more than a stranger may send
	reasonHandler     = "handler"       // what stands behind the server ended it
	reasonPanic       = "panic"         // our own fault
)

package amqp

import "time"

// What bounds a connection besides its Config. Each is far from what a client meets that
// behaves; doc.go adds them up.
const (
	// maxFrameBytes is the most that Config.MaxFrameBytes may say: a frame has to be in
	// memory whole.
	maxFrameBytes = 16 << 20

	// smallReadBytes is the buffer that a connection reads with while little comes in, and
	// all that an idle one has.
	smallReadBytes = 4 << 10
	// openFrameBytes is the largest frame that we take before the open. It fits the
	// small buffer, so that nothing more is lent to who has not said what he wants.
	openFrameBytes = smallReadBytes
	// readAheadBytes is how much more than one frame the large buffer holds.
	readAheadBytes = 64 << 10

	// highWaterBytes waiting to be written make Send wait.
	highWaterBytes = 128 << 10
	// maxAnswerBytes is how much of answers may wait to be written: a peer that makes us
	// answer and takes no answers is cut off there.
	maxAnswerBytes = 4 << 20
	// maxAllAnswerBytes is the same for all connections. Each may have freeAnswerBytes
	// besides; what is more is counted in steps, to spare the count that all share.
	maxAllAnswerBytes = 256 << 20
	freeAnswerBytes   = 16 << 10
	answerStepBytes   = 64 << 10
	// maxPooledBytes is the largest buffer that is kept for the next user.
	maxPooledBytes = 2 << 20
	// writeBytes is how much is written at once. The peer has WriteTimeout for each.
	writeBytes = 64 << 10

	// maxPartBytes is how much of unfinished messages one connection may make us hold,
	// or one message of the link with the highest limit, if that is more.
	maxPartBytes = 64 << 20
	// maxHolderPartBytes is the same for all connections of one holder, such as a policy, and
	// maxAllPartBytes for all there are. partTime is how long a message may be unfinished.
	maxHolderPartBytes = 64 << 20
	maxAllPartBytes    = 256 << 20
	partTime           = 2 * time.Minute

	// maxAttachBytes is the largest attach: decoded it may take forty times as much, if
	// only until it is answered. maxHeirBytes is how much of attaches may wait, encoded,
	// for their handles on one connection.
	maxAttachBytes = 16 << 10
	maxHeirBytes   = 256 << 10

	// incomingWindow is how many transfers a session may send before it hears of us; we
	// announce it anew when half of them have come. It is what the live service says.
	incomingWindow = 5000
	// defaultCredit of a sink that names none.
	defaultCredit = 1000
	// minChannelMax and minHandleMax are what the clients want to hear at least (the live
	// service's own); our limits on sessions and links are reported when they are reached.
	minChannelMax = 4999
	minHandleMax  = 255

	// maxHeartbeat is the longest we are silent, whatever the peer would bear: it satisfies
	// all clients. minHeartbeat keeps a peer from making us do nothing else.
	maxHeartbeat = 10 * time.Second
	minHeartbeat = 100 * time.Millisecond

	// closeWait is how long we wait for the other end's last word when we have said ours.
	closeWait = 2 * time.Second
	// drainWait is how long a source may have nothing to send before the credit that the
	// peer wants drained is given back; see Link.Drained.
	drainWait = 50 * time.Millisecond
	// dryWait is the same for a source that has said so: what was stored just now, and
	// acknowledged, has been seen by the source within it.
	dryWait = 2 * time.Millisecond

	// maxRefusing connections that have no permit are refused by an error; more are just closed.
	maxRefusing = 64

	// A vanished machine is noticed within 30 s (H7). On an open connection that is by what we
	// send, a heartbeat at the latest: it has vanished if it answers nothing for vanishedAfter.
	// That is enough for what was lost in an outage of ten seconds to be sent again and answered.
	vanishedAfter = 15 * time.Second
	// maxRetryWait bounds the kernel's pauses before it sends again, or asks again.
	maxRetryWait = 5 * time.Second
	// Before, and where the kernel does not know who answers, probes notice it.
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveProbes   = 3
)

// What a stranger may have: a peer that has shown no right. It is what any client needs to show
// one, a session with a pair of links, and some more for those who begin early with the rest. What
// is held for it besides is taken from the account of strangers (package admission).
const (
	// strangerFrameBytes is the largest frame: the largest token fits, with what is around it.
	strangerFrameBytes = 40 << 10
	// StrangerSessions and StrangerLinks of one connection. A handle is not beyond strangerHandle:
	// tables are as long as the highest.
	StrangerSessions = 8
	StrangerLinks    = 8
	strangerHandle   = 255
	// strangerBytes is how much it may send in all: many tries with the largest token.
	strangerBytes = 1 << 20
	// strangerReads is how often it is read from at once, some times what clients need to show a right, and strangerRest
	// how long nothing is read before each time after that.
	strangerReads = 64
	strangerRest  = 5 * time.Millisecond
	// strangerAnswerBytes is how much of answers may wait to be written.
	strangerAnswerBytes = freeAnswerBytes
	// strangerHeirBytes is how much of attaches may wait for their handles.
	strangerHeirBytes = maxAttachBytes
)

// Why a peer was refused something: the label of the metric.
const (
	reasonConnections = "connections"   // no permit for one more
	reasonSessions    = "sessions"      // more than MaxSessions
	reasonLinks       = "links"         // more than MaxLinks
	reasonHeader      = "header"        // not the protocol, or a version that is not ours
	reasonTLS         = "tls"           // the handshake failed
	reasonAuth        = "auth"          // SASL
	reasonOpenTimeout = "open_timeout"  // no open in time
	reasonIdle        = "idle"          // no frame in time
	reasonWrite       = "write_timeout" // the peer takes nothing
	reasonVanished    = "vanished"      // the peer's machine answers nothing
	reasonOutput      = "output"        // the peer wants answers and takes none
	reasonFrame       = "frame"         // framing: size, type, channel, handle
	reasonMalformed   = "malformed"     // a frame that cannot be decoded
	reasonProtocol    = "protocol"      // a frame that is not allowed where it came
	reasonMessageSize = "message_size"  // a message beyond the link's limit
	reasonParts       = "parts"         // too much of unfinished messages
	reasonStranger    = "stranger"      // more than a stranger may send
	reasonAttach      = "attach"        // an attach beyond our limit
	reasonPanic       = "panic"         // our own fault
)

// Package amqp is the server's side of AMQP 1.0: connections, sessions and links, and no
// idea of what is behind them. A Handler says which links may be; each link then has a
// Sink, which takes messages, or a Source, which gives them.
//
// # Goroutines
//
// A connection has two, and one more for each source, or while it has something to send if it runs
// on demand:
//
//	reading   ServeConn's caller (reader). It owns the sessions and links, takes one frame at a
//	          time, and calls the handler: Connected, Attach, Deliver, Closed,
//	          Disconnected. While a handler runs nothing else of the connection is read.
//	writing   (writer) writes what waits in the output, sends heartbeats, and watches for silence
//	          and for machines that have vanished. While it is in the midst of a write, a
//	          timer of the server's watches in its place.
//	a source  its Run. Send appends to the output; it never touches the network. On demand it
//	          begins when the source is woken, by itself or by credit that it has asked for,
//	          and lingers for a moment, so that a busy link keeps its goroutine.
//
// The reading goroutine starts the others and returns when they have ended. Deliveries are
// settled, links detached and connections closed by any goroutine.
//
// # One lock
//
// Conn.mu guards what more than one goroutine touches, in pieces that each have one purpose and
// one owner: the output, with its answers and the queue of links that wait for room; the table of
// sessions, and of each session its windows and of each link its state and its credit; the pulse,
// which is heartbeats and the vigil for the peer's machine; and the deadlines. What one goroutine
// has for itself is in reader (the input, reassembly) and in writer, and needs no lock; handshake
// is the reader's and does not change after the open.
//
// It is one lock because the order of the frames is the order of the changes that they report.
// It is held for short, never while the network or a handler is waited for; the one
// function of a handler's that runs under it is Send's appendMessage. Because every frame
// is appended under it, what is done first is written first, and after Detach nothing
// more of the link is written. Server.mu is taken before a Conn.mu, never after.
//
// # Life and death
//
//	link        attaching ──▶ attached ──▶ ended ──▶ gone
//	                              │ peer's detach: Closed, our detach
//	                              │ Detach: our detach; Closed when Run returns, or with
//	                              │         the peer's detach, until which frames are ignored
//	session     begun ──▶ over ──▶ gone      (links closed, then our end)
//	connection  layers ──▶ open ──▶ closing (2 s for the other's close) ──▶ gone
//
// A handle is free for another link when both have detached; an attach that comes before
// the peer's detach waits for it.
//
// A sink or source is closed exactly once, and before the peer is answered: what it held
// is free for whoever comes after the answer. What ends a connection, a panic of a handler
// included, ends all of that for its links too, and nothing for other connections.
//
// # Memory
//
// An idle connection holds a reading buffer of 4 KiB and the stacks of its goroutines, and
// until the open it gets nothing more. A busy one borrows more:
//
//	reading      a frame and 64 KiB
//	writing      twice 128 KiB and a message each; answers up to 4 MiB, then it is closed,
//	             and 256 MiB over all connections, then who wants the next one is closed
//	reassembly   64 MiB of unfinished messages, each up to its link's limit, counted by what
//	             their buffers hold; 256 MiB over all connections, then messages are rejected
//	attaches     one that is being answered: 16 KiB, forty times as much decoded. Of a link
//	             that is there the name is kept, at most as long; of those that wait for
//	             their handles 256 KiB, encoded
//	tables       links and sessions up to their limits, and as many again that were refused
//
// A peer that has shown no right yet, of which the handler tells by Know, is a stranger and has far
// less (limits.go): few sessions and links, small frames, and what is unfinished is also counted in
// an account that all strangers share, and in that of its address (package admission).
//
// What sinks hold of deliveries that are not settled is theirs to bound, by not returning
// from Deliver. Credit asks the peer for moderation, but nobody makes it obey.
//
// # Time
//
// Nothing has a deadline for reading. The open has to come within OpenTimeout of the
// first byte. From then on each frame has to be whole within IdleTimeout of the moment
// we began to wait for it, so that dripping bytes are no way to stay; while we are
// busy with what has come the peer is not to blame.
//
// What we write has to be taken within WriteTimeout, which is long: a client that is busy and does
// not read costs what is said above, and nothing more, so it may stay while it sends heartbeats.
// Its machine is another matter. It answers, whatever its client does, or it has vanished, and then
// its partitions are wanted by others. We are silent for 10 s at most, so there is always something
// that it should answer; if it answers nothing for 15 s it has vanished, after 25 s at the latest
// (vanish.go). That takes a kernel that reports it, and TCP at the bottom. Elsewhere the idle
// time-out has to do, and on Linux before 6.15 it has to where the client had not read for a while
// before.
package amqp

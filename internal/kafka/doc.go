// Package kafka is the server's side of Kafka's protocol: connections, requests, and who clients are, and
// no idea of what is behind them. A Handler gives each connection a Peer, which answers its requests.
//
// # Goroutines
//
// A connection has two:
//
//	reading   ServeConn's caller (reader). It takes one request at a time: head, body, and calls Begin,
//	          whose Finish it puts into the queue. While a handler runs nothing else of the connection is
//	          read.
//	writing   (Conn.finishAll, Writer) takes from the queue, one at a time and in order, calls Finish,
//	          and writes the answer. It goes on until the queue is closed, whatever happens, so that each
//	          Finish is called.
//
// So answers leave in the order of the requests, as the protocol asks for, and a producer that pipelines
// has several requests under way. The reading goroutine starts the other and returns when it has ended.
//
// # What is offered
//
// Offered is the one table. The server itself answers ApiVersions, SaslHandshake and SaslAuthenticate;
// nothing else is taken from a stranger, who has not shown who it is. A version of ApiVersions that is not
// served is answered as Kafka does; a request or a version that is not offered ends the connection.
//
// # Life and death
//
//	stranger ──▶ client ──▶ draining ──▶ gone
//	    │           │ Stop: requests under way are finished, 5 s at most
//	    │           │ its fault: the same, 2 s at most; it is gone: their contexts end
//	    │           └ its token ends: at once, unless it has shown another before
//	    └ it has not shown who it is in time, another needs its place, or the server stops: at once
//
// What ends a connection, a panic of a handler included, ends nothing for others.
//
// # Memory
//
// An idle connection holds a reading buffer of 4 KiB and the stacks of its goroutines. A busy one borrows
// more, and what it takes is counted in the memory that all connections share (admission.Memory), by
// whose right a client has come with. Where there is none left it is not read on.
//
//	Produce       64 KiB to read with, and one buffer for the records of one partition, at most
//	              MaxRecordsBytes, however large the request is. The handler has copied what it keeps
//	              when it asks for the next; that counts until the request is finished, 16 MiB at most:
//	              then, and where there is no memory left, the handler has to settle what it has before
//	              more is read. So a request never waits for what it holds itself
//	other         the body, at most 4 MiB, and about what it takes when it is decoded, until it is
//	              finished. Counts of arrays and tagged fields are held against what is there before
//	              anything is allocated for them (shape.go)
//	under way     64 requests
//	answers       one at a time, as large as the handler makes it. For what it reads from storage to be
//	              written it takes memory by Writer.Take
//
// All of it is one hold for each request, from its first byte until its answer is written (budget.go). While
// somebody waits for memory, those who have kept theirs for 5 s are pressed, the oldest first and again and
// again: a client that does not send on, or does not take its answer, is cut off; what waits for its sake,
// a fetch for events or a batch for its quota, is answered at once; and where we are at work nothing happens.
//
// A stranger has requests of 64 KiB and 1 MiB in all, of which each takes 256 bytes at least, counted in an
// account that all strangers share, and in that of its address (package admission). None of what it sends is
// decoded but its token. It is read from 64 times as it comes, and after that two hundred times a second at
// most; a request that came with another counts as a read.
//
// # Time
//
// A stranger has AuthTimeout. A client may be silent for IdleTimeout, if nothing is under way. A request
// that has begun has to go on: each part of it, be it all of it or one partition of a Produce request, has
// to be there within ReadTimeout of the moment that we began to wait for it. What we write has to be taken
// within WriteTimeout, which is long: a client that is busy and does not read costs what is said above.
package kafka

// Package natsstreams keeps the contract of package streams over a NATS cluster with JetStream.
//
// It uses three connections, so that none of them starves another: one on which messages are
// published and acknowledged, one on which they are read, and one for everything that is small and
// seldom, and for announcements.
//
// # Publishing
//
// The client library writes to its socket in the caller's goroutine, with the connection locked: a
// server that is frozen would stop everybody who publishes, or only asks whether there is a
// connection. So one goroutine alone hands messages over (publisher.run). What waits for it and what
// waits for an acknowledgement is one ring in the order of publishing (table), in which a message's
// number is its place; the number is also the last token of the subject that the servers answer to,
// of which there is one subscription. All messages have the same patience, so the oldest runs out of
// it first, and one goroutine with one timer watches the head of the ring (publisher.watch).
//
// Nothing is sent twice. The library's own asynchronous publishing tries again, and a message that
// is stored a second time, later, voids others.
//
// # What is certain
//
// An error other than streams.ErrUncertain promises that the message is not stored and never will
// be. That holds
//
//   - if it was never given to the client library: the connection was down, the publisher was stuck
//     at a frozen server until patience ran out, or the library refused it (too large, or there is no
//     connection, which it says if it was told to keep nothing for later: [Options]);
//   - if the server at the other end of our connection says "no responders" (status 503). It says so
//     where it has found no subscription for the subject, neither a stream's nor a route or gateway to
//     one, and drops the message there and then: nobody else has seen it;
//   - if a stream's leader refuses it in a way that answers.Refusal.Certain knows. Leaders refuse
//     before they propose a message to the replicas; the refusals that come after are told apart there.
//
// All else is doubt: no answer in time, a connection that broke meanwhile, an answer that cannot be
// read, a refusal that is not known.
package natsstreams

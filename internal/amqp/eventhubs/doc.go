// Package eventhubs is the AMQP listener: Azure Event Hubs' protocol on top of AMQP 1.0,
// with links to hubs and partitions, claims ($cbs) and management requests.
//
// It knows what a link's address means and what to answer; connections, sessions and
// frames are package amqp's, events and receivers the broker's, tokens those of access.
//
//	address.go, selector.go   what a client asks for: pure
//	texts.go, errors.go       what is reported when that cannot be: one table
//	handler.go, peer.go       a connection, and which links it may have
//	rights.go, vigil.go       what it was granted, and what ends with that
//	request.go, exchange.go   requests and replies: cbs.go, management.go
//	sender*.go, batch.go      links by which events come in
//	receiver.go, feed.go      links by which they go out
//
// # Who does what at once
//
// A connection's reading goroutine calls Attach and Deliver, one at a time. A message that was
// submitted has a goroutine that waits until it is stored and settles it; the bytes under way are
// bounded for each connection (budget.go). Requests of a link are handled by a goroutine that lives
// while there are any. A receiver has the goroutine that package amqp gives it. All of them end
// with the connection, and Disconnected waits for them.
//
// # Damage
//
// A receiver that meets stored events which cannot be read goes on behind them: if its
// link were ended, its client would come back to the same position for ever. That it did is
// logged as an error and counted. Only where nothing readable follows yet does the link
// end, with an error that names the events.
package eventhubs

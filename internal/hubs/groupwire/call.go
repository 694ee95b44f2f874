package groupwire

import "context"

// CallHub sends a request to the node $yard of a *hub.Hub and gives the body of the reply; package
// hub says what its errors mean. Package hub sets it when it is initialised: a processor needs it,
// and a program that uses the library does not, so it is no method of hub.Hub.
var CallHub func(ctx context.Context, hub any, operation string, body []byte) ([]byte, error)

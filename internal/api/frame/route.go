package frame

import (
	"errors"
	"fmt"
)

// Route is one operation of an API, as the table, the metrics and the log know it. Its handler
// stands beside it in the API, which alone knows what a handler is given.
type Route struct {
	// API is the name of its API; the frame fills it in.
	API string
	// Method and Path are how a client asks for it. In Path a name in braces stands for one
	// segment; a query that belongs to the operation is part of it.
	Method, Path string
	// Name is its label in the metrics and in the log; empty means Path.
	Name string
	// Need is what whoever calls has to show.
	Need Need
	// MaxBody bounds what is read of the body, in bytes; zero: nothing is.
	MaxBody int64
	// Streams: its body is not kept in memory, and whoever serves it bounds how many there are.
	Streams bool
	// Long: it waits or streams by design, so that it is not timed.
	Long bool
}

// unrouted stands for the route of requests that have none.
var unrouted = Route{Name: "none"}

// Label is what the metrics call it.
func (r Route) Label() string {
	if r.Name == "" {
		return r.Path
	}
	return r.Name
}

// check tells what is missing in a route's row.
func (r Route) check() error {
	var err error
	switch {
	case r.Method == "" || r.Path == "":
		err = errors.New("has no method or no path")
	case r.Need.Reach == Undeclared:
		err = errors.New("does not say what it needs")
	case r.Need.Reach == Nobody && r.Need.Why == "":
		err = errors.New("is open to all and does not say why")
	}
	if err != nil {
		return fmt.Errorf("route %s %s of %s %w", r.Method, r.Path, r.API, err)
	}
	return nil
}

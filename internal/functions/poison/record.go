// Package poison has the form of events that a function could not handle, as they are put away in a
// hub or a topic and taken out again. It is pure.
//
// A poison event is the original with properties beside its own: whose it is, where it came from
// and why it was put away. So it can be read by any reader of hubs, and the original can be had
// back whole:
//
//   - The properties named below are the poison event's, whatever the original had under these
//     names: a function that reads a poison hub may fail on a poison event, which then becomes a
//     poison event about a poison event. What the original had is kept under a longer name
//     (nested), level by level, and Read gives it back.
//   - Any other property stays the original's, also where its name begins with "poison-".
//   - Whatever an event is made of, its poison event can be written: values that no message can
//     carry are put into words (fit), and what makes a poison event too large is left out, the
//     least needed first (message.go). Beside an event that fills a hub's limit to the last few
//     hundred bytes nothing has room: its poison event only says where it is (message.go).
package poison

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/event"
)

// Record is an event that was put away, with why and whence.
type Record struct {
	// ID is function/hub/partition/sequence: the same however often it is put away.
	ID               string
	Function         string
	Hub, Group       string
	Partition        string
	Sequence         int64
	Offset           string
	Enqueued         time.Time
	Reason           string // the error
	Stack            string // of a panic; empty: none
	Attempts, Deaths int
	At               time.Time // when it was put away
	Instance         string
	Redriven         int // how often it had been redriven before
	// Event is the original, as it was read.
	Event event.Event
	// Reference: the original was too large to be put away. Event says where it is, and nothing
	// else; only Read sets it.
	Reference bool
}

// ID makes the stable id.
func ID(function, hub, partition string, sequence int64) string {
	return function + "/" + hub + "/" + partition + "/" + strconv.FormatInt(sequence, 10)
}

// parseID takes an id apart. Of its parts only the hub's name may have slashes, and none is empty.
func parseID(id string) (l Record, ok bool) {
	parts := strings.Split(id, "/")
	n := len(parts)
	if n < 4 || slices.Contains(parts, "") {
		return Record{}, false
	}
	number := parts[n-1]
	sequence, err := strconv.ParseInt(number, 10, 64)
	if err != nil || sequence < 0 || strconv.FormatInt(sequence, 10) != number {
		return Record{}, false
	}
	return Record{ID: id, Function: parts[0], Hub: strings.Join(parts[1:n-2], "/"), Partition: parts[n-2], Sequence: sequence}, true
}

// Properties of a poison event (all begin with "poison-") and of one that was redriven.
const (
	PropertyID        = "poison-id"
	PropertyFunction  = "poison-function"
	PropertyHub       = "poison-hub"
	PropertyGroup     = "poison-group"
	PropertyPartition = "poison-partition"
	PropertySequence  = "poison-sequence"
	PropertyOffset    = "poison-offset"
	PropertyEnqueued  = "poison-enqueued"
	PropertyKey       = "poison-key"
	PropertyReason    = "poison-reason"
	PropertyStack     = "poison-stack"
	PropertyAttempts  = "poison-attempts"
	PropertyDeaths    = "poison-deaths"
	PropertyAt        = "poison-at"
	PropertyInstance  = "poison-instance"
	PropertyReference = "poison-reference" // true: the original is not here, the body says where it is

	// An event that was redriven says how often, and for which function: hosts of others pass over
	// it.
	PropertyRedriven   = "eventyard-redriven"
	PropertyRedriveFor = "eventyard-redrive-for"
)

// nested is put before a property of the original that has a poison event's name, or this before
// it.
const nested = "poison-was-"

// isOurs says whether a poison event has a property of that name.
func isOurs(name string) bool {
	switch name {
	case PropertyID, PropertyFunction, PropertyHub, PropertyGroup, PropertyPartition, PropertySequence, PropertyOffset, PropertyEnqueued,
		PropertyKey, PropertyReason, PropertyStack, PropertyAttempts, PropertyDeaths, PropertyAt, PropertyInstance, PropertyReference:
		return true
	}
	return false
}

// For is the function that an event was redriven for; empty: for all, it was not redriven.
func For(ev event.Event) string {
	function, _ := ev.Properties[PropertyRedriveFor].(string)
	return function
}

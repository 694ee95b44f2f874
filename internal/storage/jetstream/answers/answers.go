// Package answers reads what NATS servers answer: whether a message was stored, and the parts of a
// batched direct get. It is pure, and shared by all that talk to JetStream.
package answers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

var (
	// ErrNobody: no server knew of anybody who takes the request. It was given to nobody.
	ErrNobody = errors.New("nobody takes it")
	// ErrLost: a part of an answer was lost on its way, or cannot be read.
	ErrLost = errors.New("a part of the answer was lost")
)

// Refusal is JetStream's word why something was not done.
type Refusal struct {
	// Status is like one of HTTP's; Code is more precise.
	Status      int    `json:"code"`
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Description, r.Code) }

// Codes of JetStream's.
const (
	codeNoAccountRoom  = 10002
	codeBadRequest     = 10003
	codeNoPeers        = 10005
	codeNotLeader      = 10009
	codeNoRoom         = 10023
	codeTooManyStreams = 10027
	codeNoStorage      = 10047
	codeTooLarge       = 10054
	CodeNameInUse      = 10058
	CodeNoStream       = 10059
	codeOtherStream    = 10060
	CodeNoMessage      = 10037
	CodeWrongSequence  = 10071
	codeStoreFailed    = 10077
	codeSealed         = 10109
	CodeBusy           = 10164
	codeTooMany        = 10167
)

// limitReached are what servers say with codeStoreFailed when a limit of the stream keeps a message
// out. They find so before they pass it on to the replicas, or all find so alike.
var limitReached = map[string]bool{
	"maximum bytes exceeded":                true,
	"maximum messages exceeded":             true,
	"maximum messages per subject exceeded": true,
	"message too large":                     true,
}

// Full: there is no room at the servers, for the account or in the stream.
func (r *Refusal) Full() bool {
	switch r.Code {
	case codeNoAccountRoom, codeNoRoom, codeNoStorage, codeTooLarge, codeTooManyStreams:
		return true
	case codeStoreFailed:
		return limitReached[r.Description]
	}
	return false
}

// Passing: it is worth another try, as nobody leads for the moment, or who does has just begun to and has
// not heard of all servers yet.
func (r *Refusal) Passing() bool {
	return r.Status == 503 || r.Code == codeNotLeader || r.Code == codeTooMany ||
		r.Code == codeNoPeers && (strings.Contains(r.Description, peerOffline) || strings.Contains(r.Description, peerUnknown))
}

// peerOffline and peerUnknown are what servers add to codeNoPeers where those that are missing have been
// there before: the leader is connected to one and has not heard more of it, or was not since its own
// start. Without them there are too few.
const (
	peerOffline = "peer offline"
	peerUnknown = "miscellaneous issue"
)

// Certain: a message that was refused so is not stored, and never will be. Of other refusals that
// cannot be said, however they sound: a leader whose store was just closed answers with
// codeStoreFailed, and the replicas store what it had passed on to them.
func (r *Refusal) Certain() bool {
	switch r.Code {
	case codeBadRequest, CodeNoStream, codeOtherStream, CodeWrongSequence, codeSealed, CodeBusy, codeTooMany:
		return true
	}
	return r.Full()
}

// ReadAck reads the answer to a publish: the message's sequence, or an error, which is a *Refusal if
// the answer can be read.
func ReadAck(answer []byte) (uint64, error) {
	if seq, ok := plainAck(answer); ok {
		return seq, nil
	}
	var ack struct {
		Seq   uint64   `json:"seq"`
		Error *Refusal `json:"error"`
	}
	if err := json.Unmarshal(answer, &ack); err != nil || ack.Error == nil && ack.Seq == 0 {
		return 0, fmt.Errorf("%w: %.100q", ErrLost, answer)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}

var (
	ackBegin = []byte(`{"stream":"`)
	ackSeq   = []byte(`,"seq":`)
	ackEnd   = []byte(`}`)
)

// plainAck reads the form that servers write nearly always, {"stream":"NAME","seq":12}, without the
// cost of a decoder: one is read for each message. It says no to everything else.
func plainAck(answer []byte) (seq uint64, ok bool) {
	rest, ok := bytes.CutPrefix(answer, ackBegin)
	if !ok {
		return 0, false
	}
	quote := bytes.IndexByte(rest, '"')
	if quote < 0 {
		return 0, false
	}
	if rest, ok = bytes.CutPrefix(rest[quote+1:], ackSeq); !ok {
		return 0, false
	}
	digits, ok := bytes.CutSuffix(rest, ackEnd)
	if !ok || len(digits) > 19 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		seq = 10*seq + uint64(c-'0')
	}
	return seq, seq > 0
}

// Part is one message of the answer to a batched direct get.
type Part struct {
	Seq     uint64
	Subject string
	Last    bool   // it is the end of the answer, and no message
	Pending uint64 // of the end: how many messages there are behind
}

// ReadPart reads the headers of a part that follows the message with the sequence previous, zero for
// none. Each message names the one before it, so that a lost one is noticed and not taken for one
// that is not stored. Errors: ErrLost, ErrNobody, and *Refusal.
func ReadPart(h nats.Header, previous uint64) (Part, error) {
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(h.Get(name), 10, 64)
		return n
	}
	p := Part{Seq: number("Nats-Sequence"), Subject: h.Get("Nats-Subject"), Pending: number("Nats-Num-Pending")}
	switch status := h.Get("Status"); status {
	case "":
		if p.Seq == 0 || number("Nats-Last-Sequence") != previous {
			return Part{}, fmt.Errorf("%w: a message before sequence %d", ErrLost, p.Seq)
		}
	case "204":
		if p.Last = true; number("Nats-Last-Sequence") != previous {
			return Part{}, fmt.Errorf("%w: the last message", ErrLost)
		}
	case "404":
		if p.Last = true; previous != 0 {
			return Part{}, fmt.Errorf("%w: it breaks off", ErrLost)
		}
	case "503":
		return Part{}, ErrNobody
	default:
		return Part{}, &Refusal{Status: int(number("Status")), Description: "a read is refused with " + status + " " + h.Get("Description")}
	}
	return p, nil
}

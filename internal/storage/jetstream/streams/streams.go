// Package streams says what the log of several nodes needs of the storage below it: messages in one
// total order, and a word from node to node. It holds no I/O. Two keep it: package natsstreams over
// JetStream, and package model in memory, on whose simulated nodes and faults the same engine runs
// that runs on servers. Package streamstest is the contract's other half.
package streams

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
)

// Seq is where a message lies in its stream. Each message of a stream has the sequence after that of
// the one before it, whatever their subjects; the first is 1.
type Seq = frames.StreamSeq

// Message is one stored message. Its subject is one token of the stream's own: the name of a
// partition, or any other that does not begin with '$' and has no '.', '*', '>' or space.
type Message struct {
	Seq     Seq
	Subject string
	Data    []byte
}

// Config is how a stream is kept. A stream that is there keeps what it was made with.
type Config struct {
	// Replicas is how many servers keep it.
	Replicas int
	// MaxBytes is where the storage refuses messages with ErrNoSpace; zero means no limit but its own.
	MaxBytes int64
}

// Storage keeps the streams of one yard for one node. All methods may be called by many goroutines
// at once. Those that take a context block until ctx ends at most, and answer ErrUnavailable within
// some seconds where the servers do not answer.
type Storage interface {
	// Make makes the stream unless it is there. For a moment, publishes and reads of a new one may answer
	// ErrUnavailable.
	Make(ctx context.Context, stream string, cfg Config) error
	// Delete removes a stream with all it holds. One that is not there is no error.
	Delete(ctx context.Context, stream string) error
	// Names are the streams that there are, in any order; it may be old by a moment.
	Names(ctx context.Context) ([]string, error)

	// Publish hands one message over and returns without waiting for the storage; done is called
	// once, from any goroutine, it may be before Publish returns: with the message's sequence once it
	// is as durable as the storage promises, or with an error. ErrUnavailable, ErrNoSpace, ErrNoStream
	// and ErrClosed say that it was not stored and never will be; after any other, ErrUncertain, it
	// may be stored, now or later, or even twice. Storage that cannot tell a stream that is not there
	// from one that nobody leads says ErrUnavailable. What one goroutine publishes to a stream is handed
	// over in that order, which does not say that it is stored in it. The data must not change until
	// done is called. done neither waits nor publishes.
	Publish(stream, subject string, data []byte, done func(Seq, error))

	// Read gives messages in their order, as many as the query allows. It asks whichever server
	// answers, which may not have the newest yet: what it gives are messages of the stream, and none
	// is left out between them, but there may be more behind than it says. Errors: ErrUnavailable,
	// ErrNoStream, ErrClosed, ctx's.
	Read(ctx context.Context, stream string, q Query) (Part, error)

	// Last gives the newest message of a subject, or of all subjects where it is empty: ErrNoMessage if
	// there is none. It asks the leader, so that what was acknowledged to anyone before the call counts,
	// unless the leader was cut off a moment ago and does not know yet.
	Last(ctx context.Context, stream, subject string) (Message, error)

	// State is the leader's word on the whole stream.
	State(ctx context.Context, stream string) (State, error)

	// Purge removes the messages below a sequence: of one subject, or of all where it is empty. The first
	// stops the stream while it goes on: better a thousand messages at a time.
	Purge(ctx context.Context, stream, subject string, below Seq) error

	// Announce tells all nodes that listen on the stream something, this one too. It may be lost, and
	// never waits; the data is the caller's again when it returns.
	Announce(stream string, data []byte)
	// Listen has heard called with each announcement for the stream until stop was called, one after
	// the other. It may be called once more while stop returns. The data is valid during the call only.
	Listen(stream string, heard func(data []byte)) (stop func(), err error)

	// MaxMessageBytes is the most that one message may measure; zero if that is not known yet.
	MaxMessageBytes() int
}

// Query says what is read.
type Query struct {
	// From is the first sequence wanted.
	From Seq
	// Subject, unless it is empty, leaves out all messages of others.
	Subject string
	// MaxMessages and MaxBytes bound the answer, which ends with the message that reaches one of them.
	// Zero means as much as the storage gives at once.
	MaxMessages, MaxBytes int
}

// Part is the answer to a query.
type Part struct {
	Messages []Message
	// More: there are others behind them that the query asks for.
	More bool
	// Through is the last sequence of the whole stream that the server had when it answered; 0 if it did
	// not say, as where it gave no message, not all, or those of one subject. Up to there the messages are
	// all that there were.
	Through Seq
}

// State is what a stream holds. First is the oldest sequence kept and Last the newest ever given: an
// empty stream has First = Last+1.
type State struct {
	First, Last Seq
	Bytes       int64
	// MaxBytes is where the storage refuses messages; zero means no limit but its own. It is the stream's: nodes that
	// were started with other settings, and operators, may have given it another than this node would.
	MaxBytes int64
	Messages uint64
	// Absent is how many of the servers that keep the stream are not there, or not up to date: what the others
	// lack, they may have.
	Absent int
}

// What can go wrong.
var (
	// ErrUnavailable: no server answers, or none that may decide. Nothing was published; what Make,
	// Delete and Purge ask for may be done all the same.
	ErrUnavailable = errors.New("no server answers")
	// ErrUncertain: the message was handed over, and nothing was heard of it.
	ErrUncertain = errors.New("no server has answered in time")
	// ErrNoSpace: the storage is full, or its limit was reached.
	ErrNoSpace = errors.New("no space left at the servers")
	// ErrNoStream: there is no such stream.
	ErrNoStream = errors.New("there is no such stream")
	// ErrNoMessage: there is no such message.
	ErrNoMessage = errors.New("there is no such message")
	// ErrClosed: the storage was closed.
	ErrClosed = errors.New("the connection to the servers was closed")
)

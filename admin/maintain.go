package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ScrubRequest says how a scrub is done.
type ScrubRequest struct {
	// Rate is how many bytes are read in a second at most, over all servers; 0 means 32 MiB.
	Rate int64 `json:"rate,omitempty"`
}

// ScrubProgress is how far a scrub has come.
type ScrubProgress struct {
	// Stream is what is being read; Done of all Streams have been.
	Stream  string `json:"stream,omitempty"`
	Done    int    `json:"done"`
	Streams int    `json:"streams"`
	// Messages and Bytes are what was read, of all servers.
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
	// Waiting are the servers that are waited for at the moment, as they are behind or do not answer.
	Waiting []string `json:"waiting,omitempty"`
}

// The kinds of findings.
const (
	// FindingMissing: a server does not have, or cannot read, what others have.
	FindingMissing = "missing"
	// FindingDiffers: a server has something else than others.
	FindingDiffers = "differs"
	// FindingDamaged: what all servers have is not as it was written, or something is missing at all.
	FindingDamaged = "damaged"
	// FindingMemory: the node has an entry otherwise than the servers.
	FindingMemory = "memory"
	// FindingLost: a stream is gone whose hub, topic or subscription is there.
	FindingLost = "lost"
)

// ScrubFinding is something that is not as it should be.
type ScrubFinding struct {
	Kind   string `json:"kind"`
	Stream string `json:"stream"`
	// Server has it otherwise than the others; absent where all are alike.
	Server string `json:"server,omitempty"`
	// FirstMessage to LastMessage are sequences of the stream, Messages how many of them it concerns.
	FirstMessage int64 `json:"firstMessage,omitempty"`
	LastMessage  int64 `json:"lastMessage,omitempty"`
	Messages     int   `json:"messages,omitempty"`
	// Hub is whose events it concerns; Log is what keeps them, of a hub or of something else.
	Hub       string `json:"hub,omitempty"`
	Log       string `json:"log,omitempty"`
	Partition string `json:"partition,omitempty"`
	// FirstEvent to LastEvent are their sequence numbers, where they are known.
	FirstEvent *int64 `json:"firstEvent,omitempty"`
	LastEvent  *int64 `json:"lastEvent,omitempty"`
	// Entry is the key of an entry, Blob the name of a blob's body.
	Entry  string `json:"entry,omitempty"`
	Blob   string `json:"blob,omitempty"`
	Detail string `json:"detail"`
	// Next is what to do about it.
	Next string `json:"next"`
}

// Scrub is what a scrub has looked at.
type Scrub struct {
	// Node is the one that has read.
	Node     string   `json:"node"`
	Streams  int      `json:"streams"`
	Messages int64    `json:"messages"`
	Bytes    int64    `json:"bytes"`
	Servers  []string `json:"servers"`
	Findings int      `json:"findings"`
	// Problems are what could not be looked at, and why.
	Problems []string `json:"problems,omitempty"`
}

// ScrubLine is one line of the answer: one of its fields is set.
type ScrubLine struct {
	Progress *ScrubProgress `json:"progress,omitempty"`
	Finding  *ScrubFinding  `json:"finding,omitempty"`
	// Warning says of a server, once, that what it keeps is not compared, and why.
	Warning string `json:"warning,omitempty"`
	// Done is the last line of a scrub that has looked at everything that it could.
	Done *Scrub `json:"done,omitempty"`
	// Problem is the last line of one that broke off.
	Problem *Problem `json:"problem,omitempty"`
}

// Scrub reads everything that each NATS server keeps of the yard, compares it, and judges what is in it,
// while the yard serves. heard is called with each line as it comes, progress, warnings and findings; it may be nil.
// It ends with ctx, and the scrub with it. It needs Manage to the namespace.
func (c *Client) Scrub(ctx context.Context, q ScrubRequest, heard func(ScrubLine)) (Scrub, error) {
	var done *Scrub
	err := c.lines(ctx, "scrub", q, func(line []byte) error {
		var l ScrubLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if l.Problem != nil {
			return l.Problem
		}
		if done = l.Done; heard != nil {
			heard(l)
		}
		return nil
	})
	if err == nil && done == nil {
		err = c.unreachable(ErrBrokeOff)
	}
	if err != nil {
		return Scrub{}, err
	}
	return *done, nil
}

// ReplicasRequest says how many servers are to keep each event.
type ReplicasRequest struct {
	// Replicas is 1, 3 or 5.
	Replicas int `json:"replicas"`
	// AllowFewer has to be said where there are more now.
	AllowFewer bool `json:"allowFewer,omitempty"`
}

// ReplicasProgress is how far such a change has come.
type ReplicasProgress struct {
	// Done of all Streams have the number.
	Done    int `json:"done"`
	Streams int `json:"streams"`
	// Stream is what is being changed, Behind the servers that are waited for, and Lag how many messages
	// they are behind at most.
	Stream string   `json:"stream,omitempty"`
	Behind []string `json:"behind,omitempty"`
	Lag    int64    `json:"lag,omitempty"`
}

// Replicas is what came of a change.
type Replicas struct {
	// Replicas is how many servers keep each event now, Before how many did.
	Replicas int `json:"replicas"`
	Before   int `json:"before"`
	// Changed of all Streams had another number.
	Streams int `json:"streams"`
	Changed int `json:"changed"`
}

// ReplicasLine is one line of the answer: one of its fields is set.
type ReplicasLine struct {
	Progress *ReplicasProgress `json:"progress,omitempty"`
	// Done is the last line of a change that is done.
	Done *Replicas `json:"done,omitempty"`
	// Problem is the last line of one that broke off. What was changed by then stays so.
	Problem *Problem `json:"problem,omitempty"`
}

// SetReplicas changes how many NATS servers keep each event, stream by stream, while the yard serves. heard
// is called with the progress; it may be nil. Where ctx ends it the same again goes on from there. It needs
// Manage to the namespace.
func (c *Client) SetReplicas(ctx context.Context, q ReplicasRequest, heard func(ReplicasProgress)) (Replicas, error) {
	var done *Replicas
	err := c.lines(ctx, "replicas", q, func(line []byte) error {
		var l ReplicasLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if l.Problem != nil {
			return l.Problem
		}
		if done = l.Done; l.Progress != nil && heard != nil {
			heard(*l.Progress)
		}
		return nil
	})
	if err == nil && done == nil {
		err = c.unreachable(ErrBrokeOff)
	}
	if err != nil {
		return Replicas{}, err
	}
	return *done, nil
}

// lines asks for something that takes long, and gives the lines of the answer as they come.
func (c *Client) lines(ctx context.Context, what string, q any, take func(line []byte) error) error {
	long := *c
	long.signer = c.signer.lasting(longTokenLife)
	response, err := long.do(ctx, request{
		method: http.MethodPost, path: []string{"cluster", what}, body: q, header: http.Header{"Accept": {"application/x-ndjson"}},
	})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		line, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return c.unreachable(fmt.Errorf("%w: %w", ErrBrokeOff, err))
		}
		if err := take(line); err != nil {
			return err
		}
	}
}

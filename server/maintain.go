package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	v1 "github.com/eventyard/eventyard/internal/api/v1"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/overview"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/paths"
)

// maintenance is what is done to the servers that keep the yard; nil where there are none.
func (y *yard) maintenance() v1.Maintenance {
	if y.storage.Scrub == nil || y.storage.SetReplicas == nil {
		return nil
	}
	return maintenance{y}
}

// maintenance is v1.Maintenance, over the storage.
type maintenance struct{ *yard }

const (
	// scrubRate is how many bytes a scrub reads in a second, unless it is said otherwise.
	scrubRate = 32 << 20
	// sayEvery is how often progress is sent.
	sayEvery = 500 * time.Millisecond
)

// Scrub is v1.Maintenance's.
func (m maintenance) Scrub(ctx context.Context, q admin.ScrubRequest, say func(admin.ScrubLine) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	send := func(l admin.ScrubLine) {
		if err := say(l); err != nil {
			stop(err)
		}
	}
	began, said, waiting := time.Now(), time.Time{}, false
	var found overview.Scrub
	done, err := m.storage.Scrub(ctx, storage.Scrubbing{
		Rate: cmp.Or(q.Rate, scrubRate),
		Progress: func(p storage.ScrubProgress) {
			if time.Since(said) >= sayEvery || waiting != (len(p.Waiting) > 0) {
				said, waiting = time.Now(), len(p.Waiting) > 0
				send(admin.ScrubLine{Progress: &admin.ScrubProgress{Stream: p.Stream, Done: p.Done, Streams: p.Streams, Messages: p.Messages, Bytes: p.Bytes, Waiting: p.Waiting}})
			}
		},
		Warn: func(text string) { send(admin.ScrubLine{Warning: text}) },
		Found: func(f storage.ScrubFinding) {
			shown := m.showFinding(f)
			m.cfg.Log.Error("a scrub has found damage", "kind", shown.Kind, "stream", shown.Stream, "server", shown.Server,
				"hub", shown.Hub, "partition", shown.Partition, "detail", shown.Detail)
			if found.Findings++; found.First == "" {
				found.First = scrubWords(shown)
			}
			send(admin.ScrubLine{Finding: &shown})
		},
	})
	// One that broke off, or could not ask a server, says nothing of what it did not read.
	if found.Findings > 0 || err == nil && len(done.Problems) == 0 {
		found.Ended = time.Now().UTC()
		m.figures.scrub.Store(&found)
	}
	if err != nil {
		return err
	}
	m.cfg.Log.Info("a scrub has ended", "streams", done.Streams, "findings", done.Findings, "problems", len(done.Problems), "took", time.Since(began).Round(time.Millisecond))
	send(admin.ScrubLine{Done: &admin.Scrub{
		Node: m.nodes.Self().ID, Streams: done.Done, Messages: done.Messages, Bytes: done.Bytes, Servers: append([]string{}, done.Servers...),
		Findings: done.Findings, Problems: done.Problems,
	}})
	return context.Cause(ctx)
}

// scrubWords say in short where a finding is, and what it is.
func scrubWords(f admin.ScrubFinding) string {
	where := "stream " + f.Stream
	if f.Hub != "" {
		where = "hub " + f.Hub
	}
	if f.Hub != "" && f.Partition != "" {
		where += ", partition " + f.Partition
	}
	if f.Server != "" {
		where += ", server " + f.Server
	}
	return where + ": " + f.Detail
}

// What to do about findings.
const (
	renewServer = "take a backup, stop server %s, move its store_dir away, and start it: it copies everything from the others; " +
		"when eventyard cluster status shows no replica that lags, scrub again"
	useBackup    = "take a backup, which leaves out what cannot be read, and look for it in an earlier one"
	restartNode  = "restart this node, which reads all entries anew, and scrub again"
	lookAtServer = "look at the servers' logs for why it is gone, and restore a backup"
)

func (m maintenance) showFinding(f storage.ScrubFinding) admin.ScrubFinding {
	shown := admin.ScrubFinding{
		Kind: string(f.Kind), Stream: f.Stream, Server: f.Server, FirstMessage: int64(f.FirstMessage), LastMessage: int64(f.LastMessage),
		Messages: f.Messages, Log: f.Log, Entry: f.Entry, Blob: f.Body, Detail: f.Text,
	}
	if f.Log != "" {
		shown.Hub = broker.HubOf(m.broker, f.Log)
		if f.Partition >= 0 {
			shown.Partition = strconv.Itoa(f.Partition)
		}
	}
	if f.NextEvent > f.FirstEvent {
		first, last := int64(f.FirstEvent), int64(f.NextEvent)-1
		shown.FirstEvent, shown.LastEvent = &first, &last
	}
	switch f.Kind {
	case storage.CopyMissing, storage.CopyDiffers:
		shown.Next = fmt.Sprintf(renewServer, f.Server)
	case storage.MemoryDiffers:
		shown.Next = restartNode
	case storage.StreamLost:
		shown.Next = lookAtServer
	default:
		shown.Next = useBackup
	}
	return shown
}

// SetReplicas is v1.Maintenance's.
func (m maintenance) SetReplicas(ctx context.Context, q admin.ReplicasRequest, say func(admin.ReplicasLine) error) error {
	before := m.storage.Servers(ctx).Replicas
	if before == 0 {
		return &frame.Refusal{
			Status: http.StatusServiceUnavailable, Code: "unavailable", Title: "The NATS servers do not answer",
			Detail: "how many replicas the yard has could not be asked", Next: "try again; eventyard cluster status shows the servers", RetryAfter: 5 * time.Second,
		}
	}
	if q.Replicas < before && !q.AllowFewer {
		return &frame.Refusal{
			Status: http.StatusConflict, Code: "fewer-replicas", Title: "There would be fewer replicas",
			Detail: fmt.Sprintf("the yard has %d replicas of each event, and %d are less safe: %s", before, q.Replicas, risk(q.Replicas)),
			Next:   `send "allowFewer":true where that is meant`,
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	send := func(l admin.ReplicasLine) {
		if err := say(l); err != nil {
			stop(err)
		}
	}
	said := time.Time{}
	done, err := m.storage.SetReplicas(ctx, storage.Replication{Replicas: q.Replicas, Progress: func(p storage.ReplicationProgress) {
		if time.Since(said) >= sayEvery {
			said = time.Now()
			send(admin.ReplicasLine{Progress: &admin.ReplicasProgress{Done: p.Done, Streams: p.Streams, Stream: p.Stream, Behind: p.Behind, Lag: p.Lag}})
		}
	}})
	if err != nil {
		return replicasRefusal(err, q.Replicas, done)
	}
	m.cfg.Log.Info("the number of replicas was changed", "replicas", q.Replicas, "before", before, "streams", done.Changed)
	send(admin.ReplicasLine{Done: &admin.Replicas{Replicas: q.Replicas, Before: before, Streams: done.Streams, Changed: done.Changed}})
	return context.Cause(ctx)
}

// risk says what a number of replicas means.
func risk(replicas int) string {
	if replicas == 1 {
		return "a lost server loses what it holds"
	}
	return fmt.Sprintf("%d servers may be lost at once, and no more", replicas/2)
}

// replicasRefusal puts an error of the storage into words.
func replicasRefusal(err error, replicas int, at storage.ReplicationProgress) error {
	r := &frame.Refusal{Status: http.StatusConflict, Detail: paths.Without(err), Cause: err}
	switch {
	case errors.Is(err, storage.ErrTooFewServers):
		r.Code, r.Title = "too-few-servers", "There are too few NATS servers"
		r.Next = fmt.Sprintf("start %d servers as one cluster, or ask for fewer replicas; nothing was changed", replicas)
	case errors.Is(err, storage.ErrNotWell):
		r.Code, r.Title = "streams-not-well", "A stream is not well"
		r.Next = fmt.Sprintf("wait until eventyard cluster status shows no stream without a leader and no replica that is offline or lags, and ask again: it goes on from here, with %d of %d streams done", at.Done, at.Streams)
	case errors.Is(err, storage.ErrChanging):
		r.Code, r.Title = "maintenance-under-way", "The servers are being maintained"
		r.Next = "try again when that is done, and see by eventyard cluster status which number it was; nothing was changed by this request"
	case errors.Is(err, storage.ErrNotAllowed):
		r.Code, r.Title = "servers-refuse", "The NATS servers refuse it"
		r.Next = "allow the yard's NATS user to publish to $JS.API.STREAM.UPDATE.*, have the servers read their configuration anew, and ask again"
	default:
		return err
	}
	return r
}

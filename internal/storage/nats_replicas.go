package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natsstreams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/survey"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
)

var (
	// ErrTooFewServers: there are fewer servers than replicas were asked for. Nothing was changed.
	ErrTooFewServers = connect.ErrTooFewServers
	// ErrNotWell: a stream has no leader, or a replica that is offline or stays behind. What was changed
	// before stays so; the same again goes on from there.
	ErrNotWell = errors.New("a stream is not well")
	// ErrNotAllowed: the servers do not let the yard's user do it.
	ErrNotAllowed = errors.New("the yard's NATS user may not change streams")
	// ErrChanging: another node changes the number of replicas at the moment. Nothing was changed here.
	ErrChanging = errors.New("another node changes the number of replicas")
)

// Replication is a change of how many servers keep each stream.
type Replication struct {
	// Replicas is 1, 3 or 5.
	Replicas int
	// Progress is called every now and then by the goroutine of the change, which waits for it.
	Progress func(ReplicationProgress)
}

// ReplicationProgress is how far a change has come.
type ReplicationProgress struct {
	// Done of all Streams have the number, Changed of which by this change.
	Streams, Done, Changed int
	// Stream is what is being changed, Behind the servers that are waited for, and Lag how many messages
	// they are behind at most.
	Stream string
	Behind []string
	Lag    int64
}

// The times of a change.
const (
	// wellTime is how long a stream may take to be well before it is changed.
	wellTime = 30 * time.Second
	// copyTime is how long the servers may make no progress while they copy a stream.
	copyTime = 2 * time.Minute
	// lookPause is the pause between two looks.
	lookPause = 250 * time.Millisecond
)

// updateTimes are how long a server may take to take in a change, which is asked for again.
var updateTimes = []time.Duration{3 * time.Second, 5 * time.Second, 10 * time.Second}

// setReplicas changes how many servers keep each stream, one stream after the other: each is waited for
// until all its replicas have everything. The stream of definitions is the first, since new streams have as
// many replicas as that one. It blocks until it is done, or ctx ends; what was changed by then stays so, and
// the same again goes on from there. One node does it at a time: of two with different numbers each would undo
// what the other does. Errors: ErrTooFewServers, ErrNotWell, ErrNotAllowed, ErrChanging, ctx's.
func (n *natsNode) setReplicas(ctx context.Context, change Replication) (ReplicationProgress, error) {
	if err := n.conns.Keeps(ctx, n.cfg, change.Replicas); err != nil {
		return ReplicationProgress{}, err
	}
	hold, err := holds.BeginAlone(ctx, n.entries, holds.Replicas)
	if errors.Is(err, holds.ErrHeld) {
		err = ErrChanging
	}
	if err != nil {
		return ReplicationProgress{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		<-hold.Ended()
		stop(holds.ErrLost)
	})
	r := replication{Replication: change, n: n}
	err = r.run(ctx)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	_ = hold.Release(ending) // if it fails, others wait for some seconds
	watching.Wait()
	return r.at, err
}

// run changes streams until all have the number.
func (r *replication) run(ctx context.Context) error {
	for again := true; again; { // until a look finds none that was made meanwhile
		names, err := r.find(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := r.change(ctx, name); err != nil {
				return fmt.Errorf("stream %s: %w", name, err)
			}
			r.at.Done++
			r.at.Changed++
		}
		again = len(names) > 0
	}
	r.at.Stream, r.at.Behind, r.at.Lag = "", nil, 0
	return nil
}

// replication is one under way.
type replication struct {
	Replication
	n  *natsNode
	at ReplicationProgress
}

// find gives the streams that have another number, definitions first. All streams have to be well.
func (r *replication) find(ctx context.Context) (names []string, err error) {
	found, missing, err := survey.All(ctx, r.n.conns.Control, r.n.cfg.Yard)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: nobody answers for stream %s", ErrNotWell, missing[0])
	}
	r.at.Streams, r.at.Done = 0, 0
	for _, info := range found {
		name := info.Config.Name
		if strings.HasPrefix(name, "Y_"+r.n.cfg.Yard+"_check_") { // a node is starting
			continue
		}
		if offline := offlineOf(info); offline != "" {
			return nil, fmt.Errorf("%w: stream %s: %s", ErrNotWell, name, offline)
		}
		if r.at.Streams++; info.Config.Replicas == r.Replicas {
			r.at.Done++
			continue
		}
		names = append(names, name)
	}
	first := r.n.entries.Definitions()
	slices.SortFunc(names, func(a, b string) int {
		if (a == first) != (b == first) {
			return map[bool]int{true: -1, false: 1}[a == first]
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

// offlineOf says what keeps a stream from being changed whatever it is waited for.
func offlineOf(info *jetstream.StreamInfo) string {
	if info.Cluster == nil {
		return ""
	}
	if info.Cluster.Leader == "" {
		return "it has no leader"
	}
	for _, one := range info.Cluster.Replicas {
		if one.Offline {
			return "its replica at server " + one.Name + " is offline"
		}
	}
	return ""
}

// change gives one stream its number of replicas.
func (r *replication) change(ctx context.Context, name string) error {
	r.at.Stream = name
	info, err := r.await(ctx, name, 0, wellTime)
	if errors.Is(err, jetstream.ErrStreamNotFound) { // it was removed
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.update(ctx, info.Config); err != nil {
		return err
	}
	_, err = r.await(ctx, name, r.Replicas, copyTime)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// update asks for the change. Servers do not say that it is not allowed, but to the connection.
func (r *replication) update(ctx context.Context, cfg jetstream.StreamConfig) error {
	cfg.Replicas = r.Replicas
	js, err := jetstream.New(r.n.conns.Control)
	if err != nil {
		return err
	}
	for _, wait := range updateTimes {
		asking, cancel := context.WithTimeout(ctx, wait)
		_, err = js.UpdateStream(asking, cfg)
		cancel()
		said := r.n.conns.Control.LastError()
		var refused jetstream.JetStreamError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &refused) && refused.APIError() != nil && refused.APIError().Code != 503:
			return err
		case errors.Is(said, nats.ErrPermissionViolation) && strings.Contains(said.Error(), "STREAM.UPDATE"):
			return fmt.Errorf("%w: %w", ErrNotAllowed, said)
		}
	}
	return err
}

// await waits until a stream has a number of replicas, 0 for any, which all have everything. It gives up
// when nothing has changed for so long.
func (r *replication) await(ctx context.Context, name string, replicas int, most time.Duration) (info *jetstream.StreamInfo, err error) {
	var last string
	for late := time.Now().Add(most); ; {
		if info, err = streamInfo(ctx, r.n.conns.Control, name); errors.Is(err, jetstream.ErrStreamNotFound) || ctx.Err() != nil {
			return nil, err
		}
		why := "nobody answers for it"
		if err == nil {
			if why = r.wants(info, replicas); why == "" {
				return info, nil
			}
		}
		if r.Progress != nil {
			r.Progress(r.at)
		}
		if now := fmt.Sprint(why, r.at.Lag); now != last {
			last, late = now, time.Now().Add(most)
		}
		if time.Now().After(late) {
			return nil, fmt.Errorf("%w: %s", ErrNotWell, why)
		}
		if err := sleep.For(ctx, lookPause, nil); err != nil {
			return nil, err
		}
	}
}

// wants says what a stream is waited for; nothing where it is as it should be.
func (r *replication) wants(info *jetstream.StreamInfo, replicas int) string {
	r.at.Behind, r.at.Lag = nil, 0
	if info.Cluster == nil { // a server that is alone
		return ""
	}
	if offline := offlineOf(info); offline != "" {
		return offline
	}
	for _, one := range info.Cluster.Replicas {
		if !one.Current {
			r.at.Behind = append(r.at.Behind, one.Name)
			r.at.Lag = max(r.at.Lag, int64(one.Lag))
		}
	}
	switch has := len(info.Cluster.Replicas) + 1; {
	case len(r.at.Behind) > 0:
		return "server " + strings.Join(r.at.Behind, ", ") + " is behind"
	case replicas > 0 && (has != replicas || info.Config.Replicas != replicas):
		return fmt.Sprintf("it has %d replicas, and is to have %d", has, replicas)
	}
	return ""
}

// replicas is how many the yard keeps of everything: as many as of its definitions. The number that this
// node was started with is never taken for it: the yard may have had another since.
func (n *natsNode) replicas(ctx context.Context) (int, error) {
	info, err := streamInfo(ctx, n.conns.Control, n.entries.Definitions())
	if err != nil {
		return 0, fmt.Errorf("ask how many replicas the yard has: %w", err)
	}
	return info.Config.Replicas, nil
}

// warnReplicas says that the yard has another number of replicas than this node was started with.
func (n *natsNode) warnReplicas(ctx context.Context) {
	if has, err := n.replicas(ctx); err == nil && has != n.cfg.Replicas {
		text := fmt.Sprintf("the yard has %d replicas of everything, and this node was started with %d, which is not used: start it with --replicas %d", has, n.cfg.Replicas, has)
		n.report.Warnings = append(n.report.Warnings, text)
		n.log.Warn("NATS servers: " + text)
	}
}

// yardStreams makes streams with as many replicas as the yard has.
type yardStreams struct {
	*natsstreams.Storage
	n *natsNode
}

func (s yardStreams) Make(ctx context.Context, stream string, cfg streams.Config) error {
	replicas, err := s.n.replicas(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", streams.ErrUnavailable, err)
	}
	cfg.Replicas = replicas
	return s.Storage.Make(ctx, stream, cfg)
}

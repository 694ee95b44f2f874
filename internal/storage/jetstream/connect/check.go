package connect

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/config/location"
	"github.com/eventyard/eventyard/internal/storage/jetstream/answers"
)

// checkTime is how long the servers may take to answer what a check asks. A lost leader is replaced
// within 4 to 9 seconds.
const checkTime = 15 * time.Second

// ErrUnavailable: the servers have no majority, or do not answer. To check again later helps.
var ErrUnavailable = errors.New("the NATS servers do not answer")

// Check finds out whether the servers keep what a yard promises. ErrUnfit: they do not, and the error
// says for each setting the line to write. ErrUnavailable: they have no majority just now. Settings
// that put events at risk are warnings with Unsafe. What could not be found out is a warning, too.
func (c *Conns) Check(ctx context.Context, cfg Config) (Report, error) {
	var r Report
	var known []string
	for _, conn := range []*nats.Conn{c.Publish, c.Read, c.Control} {
		r.add(Server{Name: conn.ConnectedServerName(), Version: conn.ConnectedServerVersion(), MaxPayload: conn.MaxPayload()})
		known = append(append(known, conn.DiscoveredServers()...), conn.ConnectedAddr())
	}
	r.Local, r.known = cfg.Local(known), len(cfg.Servers)
	for _, monitor := range cfg.Monitors {
		s, err := askMonitor(ctx, monitor)
		if err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the monitoring of a NATS server at %s cannot be read: %v", location.Shown(monitor), err))
			continue
		}
		r.add(s)
	}
	if cfg.asksSystem() {
		servers, err := cfg.askSystem(ctx)
		if err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the NATS servers cannot be asked through the system account: %v", err))
		}
		for _, s := range servers {
			r.add(s)
		}
	}
	if err := r.probe(ctx, c.Control, cfg); err != nil {
		return r, err
	}
	problems, warnings := r.judge(cfg.Settings)
	refused, risks := verdict(problems, cfg.Unsafe)
	r.Problems, r.Warnings = refused, slices.Concat(r.Warnings, risks, warnings)
	if len(refused) > 0 {
		return r, fmt.Errorf("%w: %s", ErrUnfit, strings.Join(refused, "; "))
	}
	return r, nil
}

// add takes in what is known of a server, beside what was known before.
func (r *Report) add(s Server) {
	i := slices.IndexFunc(r.Servers, func(there Server) bool { return there.Name == s.Name })
	if i < 0 {
		r.Servers = append(r.Servers, s)
		return
	}
	if s.SyncKnown {
		r.Servers[i].Sync, r.Servers[i].SyncKnown = s.Sync, true
	}
}

// know takes in which servers keep a stream.
func (r *Report) know(c *jetstream.ClusterInfo) {
	if c == nil { // there is one server
		return
	}
	names := map[string]bool{c.Leader: true}
	for _, s := range c.Replicas {
		names[s.Name] = true
	}
	for _, s := range r.Servers {
		names[s.Name] = true
	}
	delete(names, "") // nobody leads it just now
	r.known = max(r.known, len(names))
}

// askMonitor reads how a server is set from its monitoring.
func askMonitor(ctx context.Context, monitor string) (Server, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime/3)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(monitor, "/")+"/varz", nil)
	if err != nil {
		return Server{}, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return Server{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Server{}, fmt.Errorf("it answers %s", response.Status)
	}
	var found varz
	const mostRead = 1 << 20
	if err := json.NewDecoder(io.LimitReader(response.Body, mostRead)).Decode(&found); err != nil {
		return Server{}, err
	}
	return found.server(), nil
}

// Codes of JetStream's errors.
const (
	codeNoPeers       = 10005
	codeNoReplicas    = 10074
	codeNotEnabled    = 10076
	codeNotForAccount = 10039
)

// LacksServers: a stream was not made because the servers know of too few that could keep it.
func LacksServers(said *jetstream.APIError) bool {
	return said.ErrorCode == codeNoPeers || said.ErrorCode == codeNoReplicas
}

// ErrTooFewServers: there are fewer servers than replicas.
var ErrTooFewServers = errors.New("there are too few NATS servers")

// Keeps finds out whether the servers can keep so many replicas, by a stream that is made and deleted.
// Errors: ErrTooFewServers, ErrUnavailable, ctx's.
func (c *Conns) Keeps(ctx context.Context, cfg Config, replicas int) error {
	cfg.Replicas = replicas
	var r Report
	switch err := r.probe(ctx, c.Control, cfg); {
	case err != nil:
		return err
	case r.NoJetStream != "":
		return fmt.Errorf("%w: %s", ErrUnavailable, r.NoJetStream)
	case r.NoReplicas != "":
		return fmt.Errorf("%w for %d replicas: %s", ErrTooFewServers, replicas, r.NoReplicas)
	}
	return nil
}

// checkPrefix is what the names of streams begin with by which servers are checked.
func checkPrefix(yard string) string { return "Y_" + yard + "_check_" }

// probe makes a stream as a yard's are and deletes it: that shows whether there is JetStream, a
// majority, and a server for each replica.
func (r *Report) probe(ctx context.Context, conn *nats.Conn, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	name := checkPrefix(cfg.Yard) + rand.Text()[:8]
	asked := time.Now()
	made, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{"y." + cfg.Yard + ".check." + name}, Description: "a node of Eventyard looks whether it can start",
		Storage: jetstream.MemoryStorage, Replicas: cfg.Replicas, MaxBytes: 1 << 10, MaxAge: time.Minute,
	})
	var refused jetstream.JetStreamError
	switch {
	case err == nil:
		r.know(made.CachedInfo().Cluster)
		if shown := made.CachedInfo().TimeStamp; !shown.IsZero() {
			r.Skew = skewOf(asked, time.Now(), shown)
		}
		if err := js.DeleteStream(ctx, name); err != nil {
			return fmt.Errorf("%w: delete stream %s: %w", ErrUnavailable, name, err)
		}
		return nil
	case errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		r.NoJetStream = "no server answers for it"
		return nil
	case !errors.As(err, &refused) || refused.APIError() == nil:
		return fmt.Errorf("%w: make stream %s: %w", ErrUnavailable, name, err)
	}
	return r.refused(name, refused.APIError())
}

// refused notes why servers made no stream, where that is how they are. A leader that is not there just now is
// worth waiting for; all else is an error.
func (r *Report) refused(stream string, said *jetstream.APIError) error {
	why := answers.Refusal{Status: said.Code, Code: int(said.ErrorCode), Description: said.Description}
	switch code := said.ErrorCode; {
	case code == codeNotEnabled || code == codeNotForAccount:
		r.NoJetStream = said.Description
	case code == codeNoPeers || code == codeNoReplicas:
		r.NoReplicas = said.Description
	case why.Passing():
		return fmt.Errorf("%w: make stream %s: %w", ErrUnavailable, stream, said)
	default:
		return fmt.Errorf("make stream %s: %w", stream, said)
	}
	return nil
}

package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fakeMaintenance says some lines, and then waits for its release, if there is one, or fails.
type fakeMaintenance struct {
	release chan struct{}
	early   error
	late    error
}

func (f fakeMaintenance) end(ctx context.Context) error {
	if f.release != nil {
		select {
		case <-f.release:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return f.late
}

func (f fakeMaintenance) Scrub(ctx context.Context, q admin.ScrubRequest, say func(admin.ScrubLine) error) error {
	if f.early != nil {
		return f.early
	}
	first := int64(7)
	err := errors.Join(
		say(admin.ScrubLine{Progress: &admin.ScrubProgress{Stream: "a", Streams: 2, Bytes: q.Rate, Waiting: []string{"n2"}}}),
		say(admin.ScrubLine{Warning: "server n2 is offline"}),
		say(admin.ScrubLine{Finding: &admin.ScrubFinding{Kind: admin.FindingMissing, Stream: "a", Server: "n1", FirstEvent: &first, LastEvent: &first, Detail: "it is gone", Next: "look"}}),
		f.end(ctx))
	if err != nil {
		return err
	}
	return say(admin.ScrubLine{Done: &admin.Scrub{Node: "n", Streams: 2, Servers: []string{"n0", "n1"}, Findings: 1}})
}

func (f fakeMaintenance) SetReplicas(ctx context.Context, q admin.ReplicasRequest, say func(admin.ReplicasLine) error) error {
	if f.early != nil {
		return f.early
	}
	err := errors.Join(say(admin.ReplicasLine{Progress: &admin.ReplicasProgress{Streams: 2, Behind: []string{"n1"}}}), f.end(ctx))
	if err != nil {
		return err
	}
	return say(admin.ReplicasLine{Done: &admin.Replicas{Replicas: q.Replicas, Before: 1, Streams: 2, Changed: 2}})
}

// C6, C7: scrubs and changes of replicas send lines as described, of which the last says how it ended; what
// fails before the first is a problem, and what is asked for wrongly is refused.
func TestMaintenance(t *testing.T) {
	few := &frame.Refusal{Status: http.StatusConflict, Code: "too-few-servers", Title: "Too few", Detail: "there are too few", Next: "start more"}
	for _, tt := range []struct{ path, body, schema string }{
		{"/api/v1/cluster/scrub", `{}`, "ScrubLine"}, {"/api/v1/cluster/replicas", `{"replicas":5}`, "ReplicasLine"},
	} {
		t.Run(tt.schema, func(t *testing.T) {
			last := func(answer reply) map[string]any {
				var line map[string]any
				for _, text := range bytes.Split(bytes.TrimSpace(answer.body), []byte("\n")) {
					line = nil
					testkit.Must(t, json.Unmarshal(text, &line))
					checkSchema(t, tt.schema, line)
				}
				return line
			}
			done := last(newYard(t).want(http.StatusOK, "POST", tt.path, tt.body))
			testkit.That(t, done["done"] != nil, "it ends with %v", done)
			failing := newYard(t, func(c *Config) { c.Maintenance = fakeMaintenance{late: few} })
			broken := last(failing.want(http.StatusOK, "POST", tt.path, tt.body))
			testkit.That(t, broken["problem"] != nil, "it ends with %v", broken)
			refusing := newYard(t, func(c *Config) { c.Maintenance = fakeMaintenance{early: few} })
			refusing.refused(http.StatusConflict, "too-few-servers", "POST", tt.path, tt.body)
			alone := newYard(t, func(c *Config) { c.Maintenance = nil })
			alone.refused(http.StatusNotImplemented, "no-servers", "POST", tt.path, tt.body)
			for _, wrong := range []string{`{"replicas":2,"rate":-1}`, `{"replicas":2}`, `{"rate":-1}`} {
				newYard(t).refused(http.StatusBadRequest, "bad-request", "POST", tt.path, wrong)
			}
		})
	}
}

// V5: a change of the number of replicas is kept as activity with who asked for it, also one that broke off.
func TestAChangeOfReplicasIsKept(t *testing.T) {
	for late, want := range map[error]string{nil: "from 1 to 5", errors.New("no leader"): "to 5; it broke off, with 0 of 2 streams done"} {
		kept := &keptActivity{}
		y := newYard(t, func(c *Config) { c.Maintenance, c.Activity = fakeMaintenance{late: late}, kept })
		if late != nil {
			y.errors.Want(1)
		}
		y.want(http.StatusOK, "POST", "/api/v1/cluster/replicas", `{"replicas":5}`)
		testkit.MustEqual(t, len(kept.entries), 1, "entries of %q", want)
		e := kept.entries[0]
		testkit.That(t, e.Kind == activity.ReplicasChanged && e.Object == "cluster" && e.Detail == want && e.By == auth.RootPolicy, "kept is %+v", e)
	}
}

// keptActivity keeps what is noted while nobody else asks.
type keptActivity struct {
	Activity
	entries []activity.Entry
}

func (k *keptActivity) Note(_ context.Context, e activity.Entry) { k.entries = append(k.entries, e) }

// C7: a node does one such thing at a time, and ends it when its client leaves.
func TestOneMaintenanceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, func(c *Config) { c.Maintenance = fakeMaintenance{release: make(chan struct{})} })
		ctx, leave := context.WithCancel(t.Context())
		resp := y.open(ctx, "POST", "/api/v1/cluster/scrub", `{}`)
		y.refused(http.StatusConflict, "maintenance-under-way", "POST", "/api/v1/cluster/replicas", `{"replicas":3}`)
		leave()
		_ = resp.Body.Close()
		synctest.Wait()
		ended, end := context.WithCancel(t.Context())
		again := y.open(ended, "POST", "/api/v1/cluster/scrub", `{}`)
		testkit.Equal(t, again.StatusCode, http.StatusOK, "another scrub")
		end()
		_ = again.Body.Close()
	})
}

package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/activity/journal"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/prometheus/client_golang/prometheus"
)

// byConfiguration is who makes what the configuration says must exist.
const byConfiguration = "configuration"

// records is what the yard knows of itself as it runs.
type records struct {
	journal *journal.Journal
	notes   activity.Notes
	trial   *trial
	// connections are those of clients; nil before the grid is open.
	connections *connections
	condition   *condition
	calls       *functionCalls
}

func openRecords(cfg Config, from *storage.Storage, metrics prometheus.Registerer) (records, error) {
	j, err := journal.New(journal.Config{Engine: from.Log, Node: cfg.nodeName(), Log: cfg.Log, Metrics: metrics})
	if err != nil {
		return records{}, err
	}
	return records{journal: j, notes: j.Note, trial: newTrial(from.Writable)}, nil
}

// lookout writes the journal, and notes what nobody else does: who comes and goes among the nodes, and that
// the disk is full.
type lookout struct {
	records
	nodes   *cluster.Nodes
	folder  string // of the data; empty: there is none
	version string
}

// run works until ctx ends. It stops after all that make notes.
func (l lookout) run(ctx context.Context) error {
	self := activity.Path("nodes", l.nodes.Self().ID)
	l.notes.Note(ctx, activity.Entry{Kind: activity.NodeCame, Object: self, Detail: "version " + l.version})
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	all.Go(func() { _ = l.journal.Run(writing) }) // it gives none
	all.Go(func() { l.watchNodes(ctx) })
	l.watchDisk(ctx)
	l.notes.Note(ctx, activity.Entry{Kind: activity.NodeLeft, Object: self})
	stop()
	all.Wait()
	return nil
}

// watchNodes notes which nodes are seen no more, until ctx ends. Of those who see it, the first by name
// does.
func (l lookout) watchNodes(ctx context.Context) {
	alive := map[cluster.Node]bool{}
	for {
		changed := l.nodes.Changed()
		for _, m := range l.nodes.Members() {
			if alive[m.Node] && !m.Alive && l.nodes.Live()[0] == l.nodes.Self() {
				l.notes.Note(ctx, activity.Entry{Kind: activity.NodeLost, Object: activity.Path("nodes", m.ID), Detail: "it was seen no more; what it held may be taken"})
			}
			alive[m.Node] = m.Alive
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// How little room makes a disk full, how much makes it free again, and how often that is looked at. Where it
// is full, what is noted waits until it is not.
const (
	fullBelow = 16 << 20
	freeAbove = 32 << 20
	lookEvery = 5 * time.Second
)

// watchDisk notes that the disk of the data folder is full, and free again, until ctx ends.
func (l lookout) watchDisk(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	full := false
	for {
		if free, _, err := storage.Space(l.folder); err == nil && l.folder != "" {
			full = l.noteDisk(ctx, free, full)
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// noteDisk notes a change, and gives whether the disk is full.
func (l lookout) noteDisk(ctx context.Context, free int64, full bool) bool {
	e := activity.Entry{Object: path.Join("nodes", l.nodes.Self().ID, "disk"), Detail: fmt.Sprintf("%d MiB are left", free>>20)}
	switch {
	case !full && free < fullBelow:
		e.Kind = activity.DiskFull
	case full && free >= freeAbove:
		e.Kind = activity.DiskFree
	default:
		return full
	}
	l.notes.Note(ctx, e)
	return !full
}

// noteCertificate notes that this node serves with another certificate.
func (y *yard) noteCertificate(leaf *x509.Certificate) {
	y.notes.Note(context.Background(), activity.Entry{
		Kind: activity.CertificateReplaced, Object: activity.Path("nodes", y.nodes.Self().ID, "certificate"),
		Detail: fmt.Sprintf("%s, until %s", cmp.Or(leaf.Subject.CommonName, strings.Join(leaf.DNSNames, ", ")), leaf.NotAfter.UTC().Format(time.DateOnly)),
	})
}

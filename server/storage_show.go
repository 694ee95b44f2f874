package server

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/peer"
	"github.com/eventyard/eventyard/internal/grid/forward"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// nothing is asked of a node but to answer.
type nothing struct{}

// condition tells how storage and certificates are, at all nodes.
type condition struct {
	yard    *yard
	checks  *checker
	room    *room
	storage *forward.Every[nothing, admin.NodeStorage]
	certs   *forward.Every[nothing, admin.NodeCertificate]
}

// everyNode is how all nodes are asked something.
func (y *yard) everyNode() forward.EveryConfig {
	cfg := forward.EveryConfig{Self: nodeText(y.nodes.Self())}
	if !y.shared() {
		return cfg
	}
	cfg.Nodes, cfg.Grant, cfg.Allow = gridWire{y.nodes}, peer.Shown, peer.Judge{Access: y.access, Topics: y.topics}.Allow
	cfg.Live = func() (names []string) {
		for _, node := range y.nodes.Live() {
			names = append(names, nodeText(node))
		}
		return names
	}
	return cfg
}

func newCondition(y *yard) *condition {
	c := &condition{yard: y, checks: newChecker(y.storage.Log, y.cfg.Log), room: newRoom(y.storage.DiskFolder)}
	c.storage = forward.NewEvery(y.everyNode(), "storage.show", c.ownStorage)
	c.certs = forward.NewEvery(y.everyNode(), "certificate.show", c.ownCertificate)
	return c
}

// Storage is that of all nodes.
func (c *condition) Storage(ctx context.Context) (admin.Storage, error) {
	answers, unanswered, err := c.storage.Ask(ctx, nothing{})
	all := admin.Storage{Nodes: []admin.NodeStorage{}, Unanswered: nodeNames(unanswered)}
	for _, a := range answers {
		all.Nodes = append(all.Nodes, a)
	}
	slices.SortFunc(all.Nodes, func(a, b admin.NodeStorage) int { return cmp.Compare(a.Node, b.Node) })
	return all, err
}

// Certificates are those of all nodes.
func (c *condition) Certificates(ctx context.Context) (admin.Certificates, error) {
	answers, unanswered, err := c.certs.Ask(ctx, nothing{})
	all := admin.Certificates{Nodes: []admin.NodeCertificate{}, Unanswered: nodeNames(unanswered)}
	for _, a := range answers {
		all.Nodes = append(all.Nodes, a)
	}
	slices.SortFunc(all.Nodes, func(a, b admin.NodeCertificate) int { return cmp.Compare(a.Node, b.Node) })
	return all, err
}

// Check begins one at this node.
func (c *condition) Check(_ context.Context, q admin.StorageCheckRequest) (admin.StorageCheck, error) {
	return c.checks.begin(q.Rate)
}

// nodeNames gives the names of nodes, of the texts by which they are asked.
func nodeNames(texts []string) (names []string) {
	for _, text := range texts {
		name, _, _ := strings.Cut(text, ":")
		names = append(names, name)
	}
	return names
}

func (c *condition) ownStorage(context.Context, nothing) (admin.NodeStorage, error) {
	from := c.yard.storage
	s := admin.NodeStorage{Node: c.yard.nodes.Self().ID, Engine: from.Engine, Folder: from.DiskFolder, Check: c.checks.last()}
	if from.DiskFolder != "" {
		if absolute, err := filepath.Abs(from.DiskFolder); err == nil { // who asks may be elsewhere
			s.Folder = absolute
		}
		if free, total, err := storage.Space(from.DiskFolder); err == nil {
			s.FreeBytes, s.TotalBytes, s.DaysLeft = &free, &total, c.room.daysLeft()
		}
	}
	families, _ := c.yard.registry.Gather() // what could not be gathered is none of these
	for _, f := range families {
		if len(f.Metric) == 0 {
			continue
		}
		counted := int64(f.Metric[0].GetCounter().GetValue())
		switch f.GetName() {
		case "eventyard_disk_no_space_total":
			s.Refused = counted
		case "eventyard_disk_fenced_total":
			s.Fenced = counted
		case "eventyard_disk_corrupt_total":
			s.Damaged = counted
		case "eventyard_disk_sync_seconds":
			h := f.Metric[0].GetHistogram()
			s.Syncs, s.SyncSeconds = int64(h.GetSampleCount()), h.GetSampleSum()
		}
	}
	return s, nil
}

func (c *condition) ownCertificate(context.Context, nothing) (admin.NodeCertificate, error) {
	shown := admin.NodeCertificate{Node: c.yard.nodes.Self().ID}
	if c.yard.certs == nil {
		return shown, nil
	}
	info, err := c.yard.certs.Info()
	if err != nil {
		return shown, err
	}
	shown.Certificate = showCertificate(info)
	if ca := info.CA; ca != nil {
		shown.Authority = &admin.Certificate{Subject: ca.Subject, Until: admin.Time{Time: ca.NotAfter}, SHA256: ca.Fingerprint}
	}
	return shown, nil
}

func showCertificate(i certs.Info) *admin.Certificate {
	return &admin.Certificate{
		Subject: i.Subject, Issuer: i.Issuer, Names: i.Names, From: &admin.Time{Time: i.NotBefore}, Until: admin.Time{Time: i.NotAfter}, SHA256: i.Fingerprint,
	}
}

package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/internal/cluster/bundle"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/embedded"
)

// inspectPeer finds out whether a peer could start on a folder, and which others answer. What is stored
// is for the servers to check: they do so as they start.
func inspectPeer(ctx context.Context, folder string, p Peer, own []string) (Findings, error) {
	var found Findings
	for _, err := range []error{p.Check(), p.Bundle.Check(time.Now())} {
		if err != nil {
			found.Problems = append(found.Problems, fmt.Sprintf("bundle of %s: %v", p.Bundle.Node, err))
		}
	}
	if p.Bundle.IsNode() {
		err := inspectNode(ctx, &found, p)
		return found, err
	}
	if _, err := admitPeer(folder, Config{Peer: &p, Own: own}); err != nil {
		found.Problems = append(found.Problems, err.Error())
	} else if found.InUse, err = InUse(Disk(folder)); err != nil {
		return found, err
	}
	if !found.InUse {
		if err := p.config(folder, nil).Free(ctx); err != nil {
			found.Problems = append(found.Problems, p.explain(err).Error())
		}
	}
	for _, other := range p.Bundle.Peers {
		if other.Name != p.Bundle.Node {
			found.meet(ctx, other, p)
		}
	}
	return found, nil
}

// inspectNode finds out whether a node without a server is let in by the peers.
func inspectNode(ctx context.Context, found *Findings, p Peer) error {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	for _, one := range p.Bundle.Peers {
		own, err := p.Bundle.TLS()
		if err != nil {
			return err
		}
		settings := p.nodeSettings()
		settings.Servers = []string{one.NodesAddress()}
		asking, stop := context.WithTimeout(ctx, inspectTime/time.Duration(len(p.Bundle.Peers)))
		conns, err := connect.Dial(asking, connect.Config{Settings: settings, Node: "doctor", TLSConfig: own, Log: slog.New(slog.DiscardHandler)})
		stop()
		if err != nil {
			found.Warnings = append(found.Warnings, fmt.Sprintf("%s does not let this node in at %s: see whether it runs, with a bundle of the same init, and whether a firewall is between: %v", one.Name, one.NodesAddress(), err))
			continue
		}
		conns.Close()
		found.Servers = append(found.Servers, one.Name)
	}
	return nil
}

// meet sees who answers at the address of another peer.
func (f *Findings) meet(ctx context.Context, other bundle.Peer, p Peer) {
	own, err := p.Bundle.TLS()
	var name string
	if err == nil {
		name, err = embedded.Ask(ctx, other.Address, own)
	}
	switch {
	case errors.Is(err, embedded.ErrStranger) || err == nil && name != other.Name:
		f.Problems = append(f.Problems, fmt.Sprintf("who listens at %s is not %s of this yard: see that each machine has its own bundle, all of one init, and that no other program has the address (%v)",
			other.Address, other.Name, cmp.Or(err, fmt.Errorf("it is %s", name))))
	case err != nil:
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s does not answer at %s: see whether it runs, and whether a firewall is between: %v", other.Name, other.Address, err))
	default:
		f.Servers = append(f.Servers, other.Name)
	}
}

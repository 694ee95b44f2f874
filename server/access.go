package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// What access has in the data folder.
const (
	// ConnectionStringFile holds the root policy's connection string, for its owner only.
	ConnectionStringFile = "connection-string"
	// CertificateDir holds the yard's own certificates.
	CertificateDir = "tls"
)

// Access is what clients need to be let in.
type Access struct {
	// Development: every listener is on loopback, and the well-known key has all rights.
	Development bool
	// ServedOthers: it is in development now, and at its last start others could reach it.
	// Its root policy gets new keys when they can again.
	ServedOthers bool
	// ConnectionString is the root policy's; in development with the well-known key.
	ConnectionString string
	// File is where the root policy's connection string is kept, with its own key.
	File string
	// Renewed: the root policy has new keys, because the yard was in development before, where everybody on this machine could read them.
	Renewed bool
	// Readable are the other policies whose keys could be read then, and are as they
	// were; only names and rights are given.
	Readable []Policy
	// ReadableTopics are the topics whose keys could be read then, and are as they were.
	ReadableTopics []string
}

// ensurePolicy makes a policy what the configuration says. One that differs is replaced in one
// step, so that it is never missing, and on a full disk, too.
func (y *yard) ensurePolicy(ctx context.Context, p Policy) error {
	rights, err := auth.ParseRights(p.Rights)
	if err != nil {
		return err
	}
	want := access.Policy{Hub: p.Hub, Name: p.Name, Rights: rights, Primary: p.PrimaryKey, Secondary: p.SecondaryKey}
	there, err := y.access.Policy(p.Hub, p.Name)
	want.Quota = there.Quota
	spec.ApplyQuota(p.Quota, &want.Quota)
	switch {
	case errors.Is(err, access.ErrNotFound):
	case err != nil:
		return err
	default:
		want.Primary = cmp.Or(want.Primary, there.Primary)
		want.Secondary = cmp.Or(want.Secondary, there.Secondary)
		if want.Rights == there.Rights && want.Primary == there.Primary && want.Secondary == there.Secondary {
			_, err = y.access.Limit(ctx, p.Hub, p.Name, func(l *quota.Limit) { *l = want.Quota })
			return err
		}
		if part := auth.AmbiguousPart(p.Name); part != "" { // it could not be made
			return fmt.Errorf("%w: it differs, and its name has %q in it: declare one of another name", access.ErrInvalid, part)
		}
		if want.Primary != there.Primary || want.Secondary != there.Secondary {
			y.cfg.Log.Warn("the declared keys of a policy replace those it had, made or given at run time or declared before; who uses the old ones is let in no more",
				"policy", there.Name, "hub", there.Hub)
		}
		_, err = y.access.Replace(ctx, want)
		return err
	}
	_, err = y.access.Create(ctx, want)
	return err
}

// describeAccess keeps the root policy's connection string in the data folder, and finds out what
// to report of it. It comes last: what is reported only once counts as reported from then on.
func (y *yard) describeAccess(ctx context.Context) error {
	y.root = &rootString{dir: vfs.OS(y.cfg.DataDir), at: y.open.connectTo(y.cfg.Host), policies: y.access}
	kept, err := y.root.keep()
	if vfs.IsNoSpace(err) { // who starts on a full disk wants to free some
		y.cfg.Log.Warn("the connection string in the data folder is an old one", "error", err)
	} else if err != nil {
		return err
	}
	y.reported = Access{
		Development: y.open.development(), ConnectionString: kept.String(),
		File: filepath.Join(y.cfg.DataDir, ConnectionStringFile),
	}
	if y.reported.Development {
		kept.Key = auth.DevelopmentKey
		y.reported.ConnectionString, y.reported.ServedOthers = kept.String(), y.secrets.served
		return nil
	}
	y.reported.Renewed, y.reported.Readable = y.secrets.renewed, y.stillReadable()
	y.reported.ReadableTopics = y.secrets.topics
	return y.noteKeys(ctx, rootKeys{Development: false})
}

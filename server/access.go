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
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
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
	// File is where the root policy's connection string is kept, with its own key; empty where there
	// is no data folder. Show: so the string is to be shown now, for no other start of any node does.
	File string
	Show bool
	// Renewed: the root policy has new keys, because the yard was in development before, where everybody on this machine could read them.
	Renewed bool
	// Readable are the other policies whose keys could be read then, and are as they
	// were; only names and rights are given.
	Readable []Policy
	// ReadableTopics are the topics whose keys could be read then, and are as they were.
	ReadableTopics []string
}

// ensurePolicy makes a policy what the configuration says. One that differs is replaced in one
// step, so that it is never missing, and on a full disk, too. Where another node that starts at the
// same time was faster, it looks again.
func (y *yard) ensurePolicy(ctx context.Context, p Policy) error {
	err := y.tryEnsurePolicy(ctx, p)
	for try := 1; try < mirror.MaxTries && (errors.Is(err, access.ErrExists) || errors.Is(err, access.ErrNotFound) && y.hubExists(p.Hub)); try++ {
		if err = y.access.Reload(ctx); err == nil {
			err = y.tryEnsurePolicy(ctx, p)
		}
	}
	return err
}

func (y *yard) hubExists(name string) bool {
	_, err := y.broker.Hub(name)
	return name == "" || err == nil
}

func (y *yard) tryEnsurePolicy(ctx context.Context, p Policy) error {
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
		otherKeys := cmp.Or(want.Primary, there.Primary) != there.Primary || cmp.Or(want.Secondary, there.Secondary) != there.Secondary
		if want.Rights == there.Rights && !otherKeys {
			_, err = y.access.Limit(ctx, p.Hub, p.Name, func(l *quota.Limit) { *l = want.Quota })
			return err
		}
		if part := auth.AmbiguousPart(p.Name); part != "" { // it could not be made
			return fmt.Errorf("%w: it differs, and its name has %q in it: declare one of another name", access.ErrInvalid, part)
		}
		if otherKeys {
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
	y.root = &rootString{at: y.open.connectTo(y.cfg.Host), policies: y.access}
	if y.storage.Folder != "" {
		y.root.dir = vfs.OS(y.storage.Folder)
		y.reported.File = filepath.Join(y.storage.Folder, ConnectionStringFile)
	}
	kept, err := y.keepRoot()
	if err != nil {
		return err
	}
	if y.development() {
		kept.Key = auth.DevelopmentKey
		y.reported.Development, y.reported.ConnectionString, y.reported.ServedOthers = true, kept.String(), y.secrets.served
		return nil
	}
	// Of several nodes that start at once the one that writes the entry reports the keys, which no
	// other does.
	for try := 0; !y.secrets.settled; try++ {
		err := y.noteKeys(ctx, rootKeys{Development: false}, y.secrets.revision)
		if err == nil {
			y.reported.Show = y.reported.File == ""
			y.reported.Renewed, y.reported.Readable = y.secrets.renewed, y.stillReadable()
			y.reported.ReadableTopics = y.secrets.topics
			break
		}
		if !errors.Is(err, meta.ErrConflict) || try >= mirror.MaxTries {
			return err
		}
		topics := y.secrets.topics
		if y.secrets, err = y.openSecrets(ctx); err == nil {
			y.secrets.topics = topics
			kept, err = y.keepRoot()
		}
		if err != nil {
			return err
		}
	}
	y.reported.ConnectionString = kept.String()
	return nil
}

func (y *yard) keepRoot() (auth.ConnectionString, error) {
	kept, err := y.root.keep()
	if vfs.IsNoSpace(err) { // who starts on a full disk wants to free some
		y.cfg.Log.Warn("the connection string in the data folder is an old one", "error", err)
		return kept, nil
	}
	return kept, err
}

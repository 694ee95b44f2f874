package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/eventyard/eventyard/internal/access"
	"github.com/eventyard/eventyard/internal/access/oidc"
	"github.com/eventyard/eventyard/internal/auth"
	"github.com/eventyard/eventyard/internal/config"
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
	// Development: every door is on loopback, and the well-known key is good for all
	// rights.
	Development bool
	// ConnectionString is the root policy's; in development with the well-known key.
	ConnectionString string
	// File is where the root policy's connection string is kept, with its own key.
	File string
	// First: others can reach this yard for the first time, so its connection string is
	// to be shown.
	First bool
}

// openAccess opens the keeper of policies and sees to it that the configured ones exist.
func (y *yard) openAccess(ctx context.Context, cfg Config, open openDoors) error {
	settings := access.Config{
		Meta: y.meta, Hub: y.hubCreated, Development: open.development(), AnyBearer: cfg.AcceptAnyJWT, Log: cfg.Log,
	}
	if cfg.OIDC.Issuer != "" {
		bearer, err := oidc.New(oidc.Config{Issuer: cfg.OIDC.Issuer, Audience: cfg.OIDC.Audience})
		if err != nil {
			return err
		}
		settings.Bearer = bearer
	}
	var err error
	if y.access, err = access.Open(ctx, settings); err != nil {
		return err
	}
	for _, p := range cfg.Policies {
		if err := y.ensurePolicy(ctx, p); err != nil {
			return fmt.Errorf("configured policy %s: %w", p.Name, err)
		}
	}
	return nil
}

// hubCreated is how access learns of hubs.
func (y *yard) hubCreated(name string) (time.Time, bool) {
	hub, err := y.broker.Hub(name)
	return hub.Created, err == nil
}

// ensurePolicy makes a policy what the configuration says. One that differs is made
// anew; a crash in between is mended by the next start.
func (y *yard) ensurePolicy(ctx context.Context, p Policy) error {
	rights, err := auth.ParseRights(p.Rights)
	if err != nil {
		return err
	}
	want := access.Policy{Hub: p.Hub, Name: p.Name, Rights: rights, Primary: p.PrimaryKey, Secondary: p.SecondaryKey}
	there, err := y.access.Policy(p.Hub, p.Name)
	switch {
	case errors.Is(err, access.ErrNotFound):
	case err != nil:
		return err
	default:
		if want.Primary == "" {
			want.Primary = there.Primary
		}
		if want.Secondary == "" {
			want.Secondary = there.Secondary
		}
		if want.Rights == there.Rights && want.Primary == there.Primary && want.Secondary == there.Secondary {
			return nil
		}
		if err := y.access.Delete(ctx, p.Hub, p.Name); err != nil {
			return err
		}
	}
	_, err = y.access.Create(ctx, want)
	return err
}

// rootKeeper is the keeper as the HTTP door has it: when the key of the root policy is
// made anew, so is the file that has it, which is how an operator gets in.
type rootKeeper struct {
	*access.Keeper
	file string
	log  *slog.Logger
}

func (k *rootKeeper) Regenerate(ctx context.Context, hub, name string, key access.Key) (access.Policy, error) {
	p, err := k.Keeper.Regenerate(ctx, hub, name, key)
	if err != nil || p.Hub != "" || p.Name != auth.RootPolicy || key != access.PrimaryKey {
		return p, err
	}
	kept, err := readConnectionString(k.file)
	if err == nil {
		kept.Policy, kept.Key = p.Name, p.Primary
		err = keepConnectionString(k.file, kept)
	}
	if err != nil { // the key is made; the next start writes it down
		k.log.Warn("the connection string in the data folder has the old key", "file", k.file, "error", err)
	}
	return p, nil
}

// describeAccess keeps the root policy's connection string in the data folder, and gives
// what is to be told of it.
func (y *yard) describeAccess(cfg Config, open openDoors) (Access, error) {
	root, err := y.access.Policy("", auth.RootPolicy)
	if err != nil {
		return Access{}, fmt.Errorf("find the root policy: %w", err)
	}
	kept := open.connectTo(cfg.Host)
	kept.Policy, kept.Key = root.Name, root.Primary
	told := Access{Development: open.development(), ConnectionString: kept.String(), File: filepath.Join(cfg.DataDir, ConnectionStringFile)}
	before, err := readConnectionString(told.File)
	if err != nil {
		return Access{}, err
	}
	if err := keepConnectionString(told.File, kept); err != nil {
		return Access{}, err
	}
	if told.Development {
		known := kept
		known.Key = auth.DevelopmentKey
		told.ConnectionString = known.String()
		return told, nil
	}
	told.First = y.access.Created() || before.Endpoint == "" || isHere(before)
	return told, nil
}

// isHere tells whether a connection string points at this machine: nobody elsewhere was
// ever told of it.
func isHere(c auth.ConnectionString) bool {
	return config.Door{Address: c.Host()}.OnLoopback() || config.Door{Address: c.Host() + ":0"}.OnLoopback()
}

// readConnectionString gives what was kept; nothing where there is none, or none that
// can be read.
func readConnectionString(file string) (auth.ConnectionString, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return auth.ConnectionString{}, nil
	}
	if err != nil {
		return auth.ConnectionString{}, fmt.Errorf("read the connection string that was kept: %w", err)
	}
	c, _ := auth.ParseConnectionString(string(text)) // else it is written anew
	return c, nil
}

// keepConnectionString replaces the file as a whole. It is for its owner only.
func keepConnectionString(file string, c auth.ConnectionString) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ConnectionStringFile+"-*")
	if err != nil {
		return fmt.Errorf("keep the connection string: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("keep the connection string: %w", errors.Join(err, os.Remove(f.Name())))
		}
	}()
	_, err = f.WriteString(c.String() + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// rootKeysEntry is the key of an entry in the meta store: who may know the root policy's
// keys. While there is none they have been made at most, and no listener was open since.
const rootKeysEntry = "server/root-keys"

// rootKeys is that entry.
type rootKeys struct {
	// Development: the yard was in development after the keys were made, so that
	// everybody on this machine could read them. Else only its operator could.
	Development bool `json:"development"`
	// Occasion is a random text for this time in development. Keys that are made anew because of it
	// say so, and are not made anew twice. Empty where older versions noted it.
	Occasion string `json:"occasion,omitempty"`
}

// secrets is what is known about keys when a yard starts.
type secrets struct {
	// renewed: the root policy's keys could be read, and were replaced.
	renewed bool
	// served: others could reach the yard when it was last started, and now nobody can.
	served bool
	// readable are the other policies that could be read.
	readable []access.Policy
	// topics are those whose keys could be read.
	topics []string

	// revision is that of the entry which all this follows from; zero: there was none. settled: the
	// entry is as it should be.
	revision meta.Revision
	settled  bool
}

// readTopics notes those that have a key from the time when everybody could read it, before the
// configuration makes more of them. Nobody publishes to the yard's own by a key.
func (s *secrets) readTopics(all []topics.Topic) {
	if !s.renewed {
		return
	}
	for _, t := range all {
		if t.Name != topics.YardEvents && !t.DisableKeys {
			s.topics = append(s.topics, t.Name)
		}
	}
}

// openSecrets notes, before any listener is open, that everybody on this machine will be able
// to read keys; or makes anew what could be read, before others may use it. Several nodes may do so
// at once: they end with the same keys.
//
// Nodes that share a yard are all in development, or none: what one of them showed to everybody on its
// machine is what the others are kept safe by. So the first node that others can reach ends it for the yard,
// and those that start later have to agree; see servesOthers. Nodes that were in development by then should
// be restarted.
func (y *yard) openSecrets(ctx context.Context) (secrets, error) {
	if len(y.open) == 0 {
		return secrets{settled: true}, nil // nobody reads anything
	}
	if y.development() {
		return y.noteDevelopment(ctx)
	}
	noted, revision, err := y.notedKeys(ctx)
	switch {
	case errors.Is(err, meta.ErrNotFound) && y.storage.Folder == "":
		return secrets{}, nil // nobody knows them; of nodes that start at once one has made them
	case errors.Is(err, meta.ErrNotFound) && y.access.Created():
		// Nobody knows them, and it is noted now: if this start fails at something else, such as a mistyped
		// path, the next one could not tell these keys from those of development.
		return secrets{settled: true}, y.noteKeys(ctx, rootKeys{Development: false}, revision)
	case errors.Is(err, meta.ErrNotFound): // a start was cut short, or nothing was noted in those days
	case err != nil:
		return secrets{}, err
	case !noted.Development:
		return secrets{revision: revision, settled: true}, nil
	}
	// Should the yard stop before it has told of the new keys, the next start does: the entry stays
	// as it is until then.
	if _, err := y.access.RegenerateRoot(ctx, noted.Occasion); err != nil {
		return secrets{}, err
	}
	readable := slices.DeleteFunc(y.access.All(), func(p access.Policy) bool { return p.Hub == "" && p.Name == auth.RootPolicy })
	return secrets{renewed: true, readable: readable, revision: revision}, nil
}

// servesOthers tells whether a yard that nodes share is one that others can reach by some node, or could. A
// yard in a folder has one process, which decides that at each start.
func (y *yard) servesOthers(ctx context.Context) (bool, error) {
	if y.storage.Folder != "" {
		return false, nil
	}
	noted, _, err := y.notedKeys(ctx)
	if errors.Is(err, meta.ErrNotFound) {
		return false, nil
	}
	if err == nil && !noted.Development && y.open.onLoopback() && y.storage.Local {
		y.cfg.Log.Info("this node is not in development, though it listens on this machine alone: other nodes of the yard can be reached from elsewhere, or could be, and the well-known key is taken by none")
	}
	return err == nil && !noted.Development, err
}

// errServed: while this node started in development, the yard left it.
var errServed = errors.New("another node of this yard, which others can reach, has started at the same moment: start this one again")

// noteDevelopment notes that everybody on this machine can read keys from now on: those that were made
// since it was noted last as well.
func (y *yard) noteDevelopment(ctx context.Context) (s secrets, err error) {
	err = mirror.Uncontested(ctx, func() error {
		noted, revision, err := y.notedKeys(ctx)
		if err != nil && !errors.Is(err, meta.ErrNotFound) {
			return err
		}
		s = secrets{served: err == nil && !noted.Development, settled: true}
		if s.served && y.storage.Folder == "" {
			return errServed
		}
		if noted.Development && (noted.Occasion == "" || noted.Occasion != y.access.RootRenewed()) {
			return nil
		}
		return y.noteKeys(ctx, rootKeys{Development: true, Occasion: rand.Text()}, revision)
	})
	return s, err
}

func (y *yard) notedKeys(ctx context.Context) (rootKeys, meta.Revision, error) {
	var noted rootKeys
	entry, err := y.storage.Meta.Get(ctx, rootKeysEntry)
	if err == nil {
		err = json.Unmarshal(entry.Value, &noted)
	}
	if err != nil {
		return rootKeys{}, 0, fmt.Errorf("find out who knows the root policy's keys: %w", err)
	}
	return noted, entry.Revision, nil
}

// noteKeys changes the entry, if its revision is still that one: meta.ErrConflict. It is durable when
// the call returns.
func (y *yard) noteKeys(ctx context.Context, want rootKeys, revision meta.Revision) error {
	value, err := json.Marshal(want)
	if err == nil {
		_, err = y.storage.Meta.CompareAndSet(ctx, rootKeysEntry, revision, value)
	}
	if err != nil {
		return fmt.Errorf("note who knows the root policy's keys: %w", err)
	}
	return nil
}

// stillReadable are the policies that could be read and have a key of then.
func (y *yard) stillReadable() []Policy {
	var still []Policy
	for _, old := range y.secrets.readable {
		p, err := y.access.Policy(old.Hub, old.Name)
		if err == nil && (p.Primary == old.Primary || p.Secondary == old.Secondary) {
			still = append(still, Policy{Name: p.Name, Hub: p.Hub, Rights: p.Rights.Names()})
		}
	}
	return still
}

package azblob

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/eventyard/eventyard/processor"
)

// ErrGroupCase: with PathCase Lower, a group's name differs in nothing but case from that
// of another group in the container, whose blobs it would share.
var ErrGroupCase = errors.New("a group whose name differs only in case has these blobs")

// reading gives the folder of a group that is to be read.
func (s *store) reading(ctx context.Context, g processor.Group) (string, error) {
	return s.open(ctx, g, false)
}

// writing gives the folder of a group that is to be written; its spelling is recorded.
func (s *store) writing(ctx context.Context, g processor.Group) (string, error) {
	return s.open(ctx, g, true)
}

func (s *store) open(ctx context.Context, g processor.Group, record bool) (string, error) {
	if s.namespace(g) == "" || g.Hub == "" || g.Group == "" {
		return "", fmt.Errorf("group %+v: namespace, hub and group are needed for blob names", g)
	}
	folder := s.folder(g)
	s.mu.Lock()
	named := s.named[g]
	s.mu.Unlock()
	if s.cfg.PathCase == AsGiven || strings.EqualFold(g.Group, "$Default") || named {
		return folder, nil
	}
	known, err := s.spelling(ctx, folder+"eventyard/group", g.Group, record)
	if err != nil {
		return "", fmt.Errorf("group %s of hub %s: %w", g.Group, g.Hub, err)
	}
	if known {
		s.mu.Lock()
		s.named[g] = true
		s.mu.Unlock()
	}
	return folder, nil
}

// spelling compares the group's name with the recorded one, or records it. It reports whether there
// is a record now.
func (s *store) spelling(ctx context.Context, name, group string, recordIt bool) (bool, error) {
	for {
		found, err := s.blobs.head(ctx, name)
		if err != nil {
			return false, err
		}
		if found.version != "" {
			if found.meta["name"] != url.PathEscape(group) {
				return false, fmt.Errorf("%w: %s", ErrGroupCase, found.meta["name"])
			}
			return true, nil
		}
		if !recordIt {
			return false, nil
		}
		_, err = s.blobs.write(ctx, name, map[string]string{"name": url.PathEscape(group)}, "")
		if !errors.Is(err, processor.ErrConflict) {
			return err == nil, err
		}
		// Somebody else recorded it just now: look again.
	}
}

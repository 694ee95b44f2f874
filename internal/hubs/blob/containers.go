package blob

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// CreateContainer makes a container, or says that there is one.
func (s *Service) CreateContainer(ctx context.Context, at Path, metadata map[string]string) (Container, error) {
	if err := CheckContainer(at.Container); err != nil {
		return Container{}, err
	}
	if err := checkMetadata(metadata); err != nil {
		return Container{}, err
	}
	if err := s.fresh(ctx); err != nil {
		return Container{}, err
	}
	_, made, err := change(ctx, s, containerKey(at.Account, at.Container), func(old *containerRecord) (*containerRecord, error) {
		if old != nil {
			return nil, ErrContainerExists
		}
		t := now()
		return &containerRecord{ID: newID(), Container: Container{
			Name: at.Container, ETag: newETag(), Created: t, Modified: t, Metadata: maps.Clone(metadata),
		}}, nil
	})
	if err != nil {
		return Container{}, err
	}
	return made.Container, nil
}

// container finds one, whose id is what its blobs are beneath. Reads after it are fresh.
func (s *Service) container(ctx context.Context, at Path) (*containerRecord, error) {
	if CheckContainer(at.Container) != nil {
		return nil, ErrContainerNotFound
	}
	if err := s.fresh(ctx); err != nil {
		return nil, err
	}
	c, _, err := get[containerRecord](ctx, s, containerKey(at.Account, at.Container))
	if err == nil && c == nil {
		err = ErrContainerNotFound
	}
	return c, err
}

// Container shows one. Of the conditions it looks at the lease only, as reading does.
func (s *Service) Container(ctx context.Context, at Path, when Conditions) (Container, error) {
	c, err := s.container(ctx, at)
	if err != nil {
		return Container{}, err
	}
	if err := c.Lease.permitsReader(when.LeaseID, now()); err != nil {
		return Container{}, err
	}
	return c.Container, nil
}

// changeContainer lets one that exists be changed, if it meets the conditions but for the lease.
func (s *Service) changeContainer(ctx context.Context, at Path, when Conditions, how func(*containerRecord) (*containerRecord, error)) (old, changed *containerRecord, err error) {
	if CheckContainer(at.Container) != nil {
		return nil, nil, ErrContainerNotFound
	}
	if err := s.fresh(ctx); err != nil {
		return nil, nil, err
	}
	return change(ctx, s, containerKey(at.Account, at.Container), func(old *containerRecord) (*containerRecord, error) {
		if old == nil {
			return nil, ErrContainerNotFound
		}
		if err := when.forWrite(old.ETag, old.Modified); err != nil {
			return nil, err
		}
		changed := *old
		return how(&changed)
	})
}

// SetContainerMetadata replaces the metadata.
func (s *Service) SetContainerMetadata(ctx context.Context, at Path, metadata map[string]string, when Conditions) (Container, error) {
	if err := checkMetadata(metadata); err != nil {
		return Container{}, err
	}
	_, changed, err := s.changeContainer(ctx, at, when, func(c *containerRecord) (*containerRecord, error) {
		if err := c.Lease.permitsReader(when.LeaseID, now()); err != nil {
			return nil, err // a lease keeps a container from being deleted, and nothing else
		}
		c.Metadata, c.ETag, c.Modified = maps.Clone(metadata), newETag(), now()
		return c, nil
	})
	if err != nil {
		return Container{}, err
	}
	return changed.Container, nil
}

// clearTime is how long who deletes a container waits for its blobs to be cleared away.
const clearTime = 2 * time.Second

// DeleteContainer deletes a container with its blobs, all in one step. What takes longer
// is to clear them away, which a sweep finishes if this does not.
func (s *Service) DeleteContainer(ctx context.Context, at Path, when Conditions) error {
	old, _, err := s.changeContainer(ctx, at, when, func(c *containerRecord) (*containerRecord, error) {
		return nil, c.Lease.permits(when.LeaseID, now())
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clearTime)
	defer cancel()
	s.clear(ctx, old.ID)
	return nil
}

// LeaseContainer works on a container's lease, which keeps it from being deleted.
func (s *Service) LeaseContainer(ctx context.Context, at Path, action LeaseAction, when Conditions) (Container, error) {
	_, changed, err := s.changeContainer(ctx, at, when, func(c *containerRecord) (_ *containerRecord, err error) {
		c.Lease, err = c.Lease.apply(action, now())
		return c, err
	})
	if err != nil {
		return Container{}, err
	}
	return changed.Container, nil
}

// ListQuery says what of a list is wanted.
type ListQuery struct {
	Prefix string
	// Delimiter has names that go on after it gathered as one prefix; empty: none are.
	Delimiter string
	// Marker is that of the page before; empty for the first one.
	Marker string
	// Max is 1 to MaxPage; zero means MaxPage.
	Max int
	// Uncommitted wants blobs that have only blocks, too.
	Uncommitted bool
}

// Containers gives a page of an account's containers, by name, and the marker of the next
// page, empty if there is none.
func (s *Service) Containers(ctx context.Context, account string, q ListQuery) ([]Container, string, error) {
	after, err := parseMarker(q.Marker)
	if err != nil {
		return nil, "", err
	}
	if err := s.fresh(ctx); err != nil {
		return nil, "", err
	}
	prefix := containersPrefix + account + "/"
	entries, err := s.meta.List(ctx, prefix)
	if err != nil {
		return nil, "", err
	}
	var page []Container
	for _, e := range entries {
		name := strings.TrimPrefix(e.Key, prefix)
		if !strings.HasPrefix(name, q.Prefix) || !after.before(name) {
			continue
		}
		if len(page) == q.max() {
			return page, marker{name: page[len(page)-1].Name}.String(), nil
		}
		c, err := decode[containerRecord](e)
		if err != nil {
			return nil, "", err
		}
		page = append(page, c.Container)
	}
	return slices.Clip(page), "", nil
}

func (q ListQuery) max() int {
	if q.Max <= 0 || q.Max > MaxPage {
		return MaxPage
	}
	return q.Max
}

package blob

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Page is a part of a list.
type Page struct {
	// Blobs and Prefixes are each in the order of their names.
	Blobs    []Blob
	Prefixes []string
	// Next is the marker of the next page; empty if there is none.
	Next string
}

// List gives a page of a container's blobs. Pages are not of one moment: a blob that is
// there all the while is in exactly one of them.
func (s *Service) List(ctx context.Context, at Path, q ListQuery) (Page, error) {
	after, err := parseMarker(q.Marker)
	if err != nil {
		return Page{}, err
	}
	c, err := s.container(ctx, at)
	if err != nil {
		return Page{}, err
	}
	found, err := s.named(ctx, c.ID, q.Prefix)
	if err != nil {
		return Page{}, err
	}
	p := pager{query: q, after: after}
	for _, f := range found {
		if more, err := p.add(f); err != nil || !more {
			return p.page, err
		}
	}
	return p.page, nil
}

// finding is an entry with its blob's name.
type finding struct {
	name  string
	entry meta.Entry
}

// named gives all blobs whose name has a prefix, by name.
func (s *Service) named(ctx context.Context, container, prefix string) ([]finding, error) {
	entries, err := s.meta.List(ctx, listPrefix(container, prefix))
	if err != nil {
		return nil, err
	}
	long, err := s.meta.List(ctx, longPrefix+container+"/")
	if err != nil {
		return nil, err
	}
	var found []finding
	for _, e := range append(entries, long...) {
		// The name is read off the key if it is there, which spares reading the entry.
		var name string
		if text, ok := strings.CutPrefix(e.Key, blobsPrefix+container+"/"); ok {
			name, err = unescapeName(text)
		} else if r, failed := decode[record](e); failed == nil {
			name = r.Name
		} else {
			err = failed
		}
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(name, prefix) {
			found = append(found, finding{name, e})
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// pager gathers one page.
type pager struct {
	query ListQuery
	after marker
	page  Page
	last  marker // of what was gathered last
}

// add takes the next blob by name, and reports whether the page takes more.
func (p *pager) add(f finding) (more bool, err error) {
	if !p.after.before(f.name) || p.last.prefix && !p.last.before(f.name) {
		return true, nil
	}
	r, err := decode[record](f.entry)
	if err != nil {
		return false, err
	}
	if r.Uncommitted && !p.query.Uncommitted {
		return true, nil
	}
	if len(p.page.Blobs)+len(p.page.Prefixes) == p.query.max() {
		p.page.Next = p.last.String()
		return false, nil
	}
	if rest := len(p.query.Prefix); p.query.Delimiter != "" {
		if at := strings.Index(f.name[rest:], p.query.Delimiter); at >= 0 { // one prefix stands for all such names
			prefix := f.name[:rest+at+len(p.query.Delimiter)]
			p.page.Prefixes = append(p.page.Prefixes, prefix)
			p.last = marker{name: prefix, prefix: true}
			return true, nil
		}
	}
	p.page.Blobs = append(p.page.Blobs, r.Blob)
	p.last = marker{name: f.name}
	return true, nil
}

// marker is where a list goes on: after a name, or after all names with a prefix.
type marker struct {
	name   string
	prefix bool
}

func (m marker) String() string {
	kind := "n"
	if m.prefix {
		kind = "p"
	}
	return base64.RawURLEncoding.EncodeToString([]byte(kind + m.name))
}

func parseMarker(text string) (marker, error) {
	if text == "" {
		return marker{}, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(plain) < 2 || plain[0] != 'n' && plain[0] != 'p' {
		return marker{}, fmt.Errorf("%w: %.64q", ErrMarker, text)
	}
	return marker{name: string(plain[1:]), prefix: plain[0] == 'p'}, nil
}

// before reports whether a name comes after the marker.
func (m marker) before(name string) bool {
	return name > m.name && !(m.prefix && strings.HasPrefix(name, m.name))
}

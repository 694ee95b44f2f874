package topics

import (
	"net/url"
	"strings"
)

// Kinds of places.
const (
	PlaceYard   = "yard"
	PlaceFolder = "folder"
	PlaceBlob   = "blob"
	PlaceHub    = "hub"
)

// placeRule is what a place that cannot be read is told.
const placeRule = "write yard, folder:DIR, blob:URL (a container's), hub:NAME or none"

// ParsePlace reads yard, folder:DIR, blob:URL, hub:NAME; none, or nothing, is no place.
func ParsePlace(text string) (Place, error) {
	kind, where, _ := strings.Cut(strings.TrimSpace(text), ":")
	if kind == "" || strings.EqualFold(kind, "none") {
		if where != "" {
			return Place{}, invalid("dead letters: %s", placeRule)
		}
		return Place{}, nil
	}
	p := Place{Kind: strings.ToLower(kind), Where: where}
	return p, p.check()
}

// check looks at a place by itself; whether it may be used is for others to say.
func (p Place) check() error {
	switch p.Kind {
	case "", PlaceYard:
		if p.Where != "" || p.Key != "" {
			return invalid("dead letters: %q has nothing behind it, and no key: %s", p.Kind, placeRule)
		}
		return nil
	case PlaceFolder, PlaceHub:
		if p.Where == "" || p.Key != "" {
			return invalid("dead letters: a %s is named, and has no key: %s", p.Kind, placeRule)
		}
		return nil
	case PlaceBlob:
		return p.checkBlob()
	}
	return invalid("dead letters: %.32q is no kind of place: %s", p.Kind, placeRule)
}

// checkBlob never repeats the URL, which may have a signature in it.
func (p Place) checkBlob() error {
	u, err := url.Parse(p.Where)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return invalid("dead letters: blob: is followed by a container's URL, as in blob:https://account.blob.core.windows.net/dead")
	}
	if u.User != nil {
		return invalid("dead letters: the container's URL has a user in it: use a signature in the query, or a key")
	}
	if strings.Trim(u.Path, "/") == "" {
		return invalid("dead letters: the container's URL names no container: append /CONTAINER")
	}
	return nil
}

// String is what ParsePlace reads, with the query of a URL hidden, and without the key.
func (p Place) String() string {
	if p.Kind == "" {
		return "none"
	}
	where := p.Where
	if base, query, found := strings.Cut(where, "?"); found && query != "" && p.Kind == PlaceBlob {
		where = base + "?..."
	}
	if where == "" {
		return p.Kind
	}
	return p.Kind + ":" + where
}

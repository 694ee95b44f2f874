package topics

import (
	"net/url"
	"strings"
)

// Kinds of places.
const (
	TargetYard   = "yard"
	TargetFolder = "folder"
	TargetBlob   = "blob"
	TargetHub    = "hub"
)

// targetRule is what a place that cannot be read is told.
const targetRule = "write yard, folder:DIR, blob:URL (a container's), hub:NAME or none"

// ParseTarget reads yard, folder:DIR, blob:URL, hub:NAME; none, or nothing, is no place.
func ParseTarget(text string) (Target, error) {
	kind, where, _ := strings.Cut(strings.TrimSpace(text), ":")
	if kind == "" || strings.EqualFold(kind, "none") {
		if where != "" {
			return Target{}, invalid("dead letters: %s", targetRule)
		}
		return Target{}, nil
	}
	p := Target{Kind: strings.ToLower(kind), Where: where}
	return p, p.check()
}

// check looks at a place by itself; whether it may be used is for others to say.
func (p Target) check() error {
	switch p.Kind {
	case "", TargetYard:
		if p.Where != "" || p.Key != "" {
			return invalid("dead letters: %q has nothing behind it, and no key: %s", p.Kind, targetRule)
		}
		return nil
	case TargetFolder, TargetHub:
		if p.Where == "" || p.Key != "" {
			return invalid("dead letters: a %s is named, and has no key: %s", p.Kind, targetRule)
		}
		return nil
	case TargetBlob:
		return p.checkBlob()
	}
	return invalid("dead letters: %.32q is no kind of place: %s", p.Kind, targetRule)
}

// checkBlob never repeats the URL, which may have a signature in it.
func (p Target) checkBlob() error {
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
func (p Target) String() string {
	if p.Kind == "" {
		return "none"
	}
	where := p.Where
	if base, query, found := strings.Cut(where, "?"); found && query != "" && p.Kind == TargetBlob {
		where = base + "?..."
	}
	if where == "" {
		return p.Kind
	}
	return p.Kind + ":" + where
}

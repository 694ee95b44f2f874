package topics

import (
	"net/url"
	"regexp"
	"strings"
)

// Kinds of targets.
const (
	TargetYard   = "yard"
	TargetFolder = "folder"
	TargetBlob   = "blob"
	TargetHub    = "hub"
)

// targetRule says what to write, for errors.
const targetRule = "write yard, folder:DIR, blob:URL (a container's), blob:ACCOUNT/CONTAINER (of an account that the yard knows), hub:NAME or none"

// ParseTarget reads yard, folder:DIR, blob:URL, hub:NAME; none, or nothing, is no target.
func ParseTarget(text string) (Target, error) {
	kind, where, _ := strings.Cut(strings.TrimSpace(text), ":")
	if kind == "" || strings.EqualFold(kind, "none") {
		if where != "" {
			return Target{}, invalid("dead letters: %s", targetRule)
		}
		return Target{}, nil
	}
	t := Target{Kind: strings.ToLower(kind), Where: where}
	return t, t.check()
}

// check looks at a target by itself; whether it may be used is for others to say.
func (t Target) check() error {
	switch t.Kind {
	case "", TargetYard:
		if t.Where != "" || t.Key != "" {
			return invalid("dead letters: %q has nothing behind it, and no key: %s", t.Kind, targetRule)
		}
		return nil
	case TargetFolder, TargetHub:
		if t.Where == "" || t.Key != "" {
			return invalid("dead letters: a %s is named, and has no key: %s", t.Kind, targetRule)
		}
		return nil
	case TargetBlob: // whose URL is never repeated: it may have a signature in it
		if _, _, ok := t.Account(); ok {
			if t.Key != "" {
				return invalid("dead letters: %s is in an account that the yard knows: leave out the key, or write the container's URL", t.Where)
			}
			return nil
		}
		u, err := url.Parse(t.Where)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return invalid("dead letters: blob: is followed by a container's URL, as in blob:https://account.blob.core.windows.net/dead")
		case u.User != nil:
			return invalid("dead letters: the container's URL has a user in it: use a signature in the query, or a key")
		case strings.Trim(u.Path, "/") == "":
			return invalid("dead letters: the container's URL names no container: append /CONTAINER")
		}
		return nil
	}
	return invalid("dead letters: %.32q is no kind of target: %s", t.Kind, targetRule)
}

// Account gives account and container of a blob target that has no URL: the yard knows the account.
func (t Target) Account() (account, container string, ok bool) {
	account, container, ok = strings.Cut(t.Where, "/")
	return account, container, ok && t.Kind == TargetBlob && IsAccount(account) && isContainer.MatchString(container)
}

// IsAccount tells whether a storage account may have that name.
func IsAccount(name string) bool { return isAccount.MatchString(name) }

var (
	isAccount   = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	isContainer = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{2,62}$`)
)

// String is what ParseTarget reads, with the query of a URL hidden, and without the key.
func (t Target) String() string {
	if t.Kind == "" {
		return "none"
	}
	where := t.Where
	if base, query, found := strings.Cut(where, "?"); found && query != "" && t.Kind == TargetBlob {
		where = base + "?..."
	}
	if where == "" {
		return t.Kind
	}
	return t.Kind + ":" + where
}

package blob

import (
	"strings"
	"time"
)

// Conditions are what a request depends on. The zero value is none.
type Conditions struct {
	// IfMatch and IfNoneMatch are "*", or ETags with or without quotes, with commas
	// between them; empty asks nothing.
	IfMatch, IfNoneMatch string
	// IfModifiedSince and IfUnmodifiedSince have the precision of a second.
	IfModifiedSince, IfUnmodifiedSince time.Time
	// LeaseID is that of the caller's lease; empty if it has none.
	LeaseID string
	// CreateOnly: the caller may not overwrite anything.
	CreateOnly bool
}

// forWrite tells whether something that exists may be changed.
func (c Conditions) forWrite(etag string, modified time.Time) error {
	if !c.matches(etag) || c.seen(etag, modified) || c.changed(modified) {
		return ErrConditionNotMet
	}
	return nil
}

// forRead tells whether something that exists is to be shown.
func (c Conditions) forRead(etag string, modified time.Time) error {
	switch {
	case !c.matches(etag) || c.changed(modified):
		return ErrConditionNotMet
	case c.seen(etag, modified):
		return ErrNotModified
	}
	return nil
}

// forPut tells whether the body of a blob may be written, which creates it if there is
// none: old is nil then.
func (c Conditions) forPut(old *Blob) error {
	switch {
	case old == nil && c.IfMatch != "":
		return ErrConditionNotMet
	case old == nil:
		return nil
	case strings.TrimSpace(c.IfNoneMatch) == "*":
		return ErrBlobExists
	case c.CreateOnly:
		return ErrOverwrite
	}
	return c.forWrite(old.ETag, old.Modified)
}

func (c Conditions) matches(etag string) bool { return c.IfMatch == "" || names(c.IfMatch, etag) }

// seen tells whether the caller knows the present state.
func (c Conditions) seen(etag string, modified time.Time) bool {
	if c.IfNoneMatch != "" && names(c.IfNoneMatch, etag) {
		return true
	}
	return !c.IfModifiedSince.IsZero() && !modified.Truncate(time.Second).After(c.IfModifiedSince)
}

func (c Conditions) changed(modified time.Time) bool {
	return !c.IfUnmodifiedSince.IsZero() && modified.Truncate(time.Second).After(c.IfUnmodifiedSince)
}

// names tells whether a list of ETags has one.
func names(list, etag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == "*" || strings.Trim(one, `"`) == etag {
			return true
		}
	}
	return false
}

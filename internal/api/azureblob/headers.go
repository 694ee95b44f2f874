package azureblob

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// metaPrefix begins the headers that carry metadata.
const metaPrefix = "x-ms-meta-"

// conditionHeaders come once or not at all: of several only the first is signed, and who
// sends an empty one believes to be safe by it.
var conditionHeaders = []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}

// conditions reads what a request depends on.
func (c *call) conditions() (blob.Conditions, error) {
	h := c.R.Header
	for _, name := range conditionHeaders {
		if values := h.Values(name); len(values) > 1 || len(values) == 1 && strings.TrimSpace(values[0]) == "" {
			return blob.Conditions{}, invalidHeader(name, strings.Join(values, ", "))
		}
	}
	when := blob.Conditions{
		IfMatch: h.Get("If-Match"), IfNoneMatch: h.Get("If-None-Match"), CreateOnly: c.grant.mayOnlyCreate(),
	}
	for name, field := range map[string]*time.Time{
		"If-Modified-Since": &when.IfModifiedSince, "If-Unmodified-Since": &when.IfUnmodifiedSince,
	} {
		text := h.Get(name)
		if text == "" {
			continue
		}
		t, err := http.ParseTime(text)
		if err != nil {
			return when, invalidHeader(name, text)
		}
		*field = t
	}
	if h.Get("x-ms-if-tags") != "" {
		return when, refusal(http.StatusBadRequest, "UnsupportedHeader", "blobs have no tags here: leave out x-ms-if-tags")
	}
	var err error
	when.LeaseID, err = leaseIDOf(h, "x-ms-lease-id", false)
	return when, err
}

// leaseIDOf reads a lease's id, which is a GUID and is compared whatever its case.
func leaseIDOf(h http.Header, name string, required bool) (string, error) {
	text := strings.ToLower(strings.Trim(h.Get(name), "{}"))
	switch {
	case text == "" && required:
		return "", missingHeader(name)
	case text != "" && !guidForm.MatchString(text):
		return "", invalidHeader(name, text)
	}
	return text, nil
}

var guidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// metadata reads that of a request. Names are kept in small letters, which is how all
// libraries look for them; the case that a client wrote does not reach this listener anyhow.
func (c *call) metadata() (map[string]string, error) {
	all := map[string]string{}
	for name, values := range c.R.Header {
		short, ok := strings.CutPrefix(strings.ToLower(name), metaPrefix)
		if !ok {
			continue
		}
		if short == "" {
			return nil, refusal(http.StatusBadRequest, "EmptyMetadataKey", "metadata has a name")
		}
		all[short] = strings.Join(values, ",")
	}
	return all, nil
}

// properties reads those of a request, which for a body may be told by the usual headers.
func (c *call) properties(withUsual bool) (blob.Properties, error) {
	h := c.R.Header
	either := func(own, usual string) string {
		if value := h.Get(own); value != "" || !withUsual {
			return value
		}
		return h.Get(usual)
	}
	p := blob.Properties{
		ContentType:        either("x-ms-blob-content-type", "Content-Type"),
		ContentEncoding:    either("x-ms-blob-content-encoding", "Content-Encoding"),
		ContentLanguage:    either("x-ms-blob-content-language", "Content-Language"),
		ContentDisposition: h.Get("x-ms-blob-content-disposition"),
		CacheControl:       either("x-ms-blob-cache-control", "Cache-Control"),
	}
	if text := h.Get("x-ms-blob-content-md5"); text != "" {
		sum, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(sum) != 16 {
			return p, refusal(http.StatusBadRequest, "InvalidMd5", "x-ms-blob-content-md5 is no MD5 in base64")
		}
		p.ContentMD5 = sum
	}
	return p, nil
}

// sendVersion sets the headers that name a state.
func (c *call) sendVersion(etag string, modified time.Time) {
	h := c.Header()
	h.Set("ETag", `"`+etag+`"`)
	h.Set("Last-Modified", httpTime(modified))
}

// sendWritten sets those of an answer to a write.
func (c *call) sendWritten(etag string, modified time.Time) {
	c.sendVersion(etag, modified)
	c.Header().Set("x-ms-request-server-encrypted", "true")
}

func httpTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// sendMetadata writes names as they are kept, in small letters.
func (c *call) sendMetadata(all map[string]string) {
	h := c.Header()
	for name, value := range all {
		h[metaPrefix+name] = []string{value}
	}
}

// Names of leases' states, by blob.LeaseState.
var leaseStates = [...]string{"available", "leased", "expired", "breaking", "broken"}

// leaseWords are status, state and duration of a lease; the last is empty for none.
func leaseWords(l blob.Lease, now time.Time) (status, state, duration string) {
	status, state = "unlocked", leaseStates[l.State(now)]
	if l.Locked(now) {
		status = "locked"
	}
	if l.State(now) == blob.LeaseHeld {
		duration = "fixed"
		if l.Duration < 0 {
			duration = "infinite"
		}
	}
	return status, state, duration
}

func (c *call) sendLease(l blob.Lease) {
	h := c.Header()
	status, state, duration := leaseWords(l, time.Now())
	h.Set("x-ms-lease-status", status)
	h.Set("x-ms-lease-state", state)
	if duration != "" {
		h.Set("x-ms-lease-duration", duration)
	}
}

// sendBlob sets all that is known of a blob besides its body and length. A signature may
// say what readers are told in place of the blob's properties.
func (c *call) sendBlob(b blob.Blob) {
	h := c.Header()
	c.sendVersion(b.ETag, b.Modified)
	c.sendMetadata(b.Metadata)
	c.sendLease(b.Lease)
	h.Set("x-ms-blob-type", "BlockBlob")
	h.Set("x-ms-creation-time", httpTime(b.Created))
	h.Set("x-ms-server-encrypted", "true")
	h.Set("Accept-Ranges", "bytes")
	p := b.Properties
	for _, reported := range []struct{ header, value, override string }{
		{"Content-Type", cmp.Or(p.ContentType, defaultType), "rsct"}, {"Content-Encoding", p.ContentEncoding, "rsce"}, {"Content-Language", p.ContentLanguage, "rscl"},
		{"Content-Disposition", p.ContentDisposition, "rscd"}, {"Cache-Control", p.CacheControl, "rscc"},
	} {
		if value := cmp.Or(c.grant.overrides.Get(reported.override), reported.value); value != "" {
			h.Set(reported.header, value)
		}
	}
}

// defaultType is the Content-Type of a blob that was stored without one.
const defaultType = "application/octet-stream"

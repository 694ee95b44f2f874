package blob

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Keys of the meta store. A container has an id besides its name, so that to delete its one entry
// deletes all its blobs: none of another container of that name is beneath the same id.
const (
	allPrefix        = "blobs/"
	containersPrefix = "blobs/containers/" // ACCOUNT/NAME
	blobsPrefix      = "blobs/records/"    // CONTAINER-ID/NAME, segment by segment
	longPrefix       = "blobs/long/"       // CONTAINER-ID/DIGEST: names too long for a key
	blocksPrefix     = "blobs/blocks/"     // CONTAINER-ID/DIGEST/STATE/BLOCK
)

func containerKey(account, name string) string { return containersPrefix + account + "/" + name }

// blobKey is where a blob's entry is. The name's slashes are kept, so that a list by folder
// reads that folder only.
func blobKey(container, name string) string {
	key := blobsPrefix + container + "/" + escapeName(name)
	if len(key) > meta.MaxKeyBytes {
		return longPrefix + container + "/" + digest(name)
	}
	return key
}

// blocksOf is what the uncommitted blocks of one state of a blob are beneath.
func blocksOf(container, name, state string) string {
	return blocksPrefix + container + "/" + digest(name) + "/" + state + "/"
}

func blockKey(container, name, state, block string) string {
	return blocksOf(container, name, state) + base64.RawURLEncoding.EncodeToString([]byte(block))
}

func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// escapeName makes a key's segments of any name: an empty one is a lone '%'.
func escapeName(name string) string {
	segments := strings.Split(name, "/")
	for i, segment := range segments {
		segments[i] = escapeSegment(segment)
	}
	return strings.Join(segments, "/")
}

func escapeSegment(segment string) string {
	if segment == "" {
		return "%"
	}
	var b strings.Builder
	for _, r := range segment {
		if r != '%' && !unicode.IsControl(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unescapeName is the reverse of escapeName.
func unescapeName(text string) (string, error) {
	segments := strings.Split(text, "/")
	for i, segment := range segments {
		if segment == "%" {
			segments[i] = ""
			continue
		}
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return "", err
		}
		segments[i] = plain
	}
	return strings.Join(segments, "/"), nil
}

// listPrefix is the narrowest prefix of keys that has all names with a prefix, apart from
// the long ones.
func listPrefix(container, prefix string) string {
	key := blobsPrefix + container + "/"
	folder := strings.LastIndexByte(prefix, '/')
	if folder < 0 {
		return key
	}
	narrow := key + escapeName(prefix[:folder]) + "/"
	if meta.CheckPrefix(narrow) != nil {
		return key
	}
	return narrow
}

// CheckContainer wants 3 to 63 small letters, digits and single hyphens between them for a
// container's name, or one of the names with a '$'. Errors wrap ErrName.
func CheckContainer(name string) error {
	switch name {
	case "$root", "$web", "$logs":
		return nil
	}
	bad := func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	if len(name) < 3 || len(name) > 63 || strings.ContainsFunc(name, bad) || strings.Contains(name, "--") ||
		name[0] == '-' || name[len(name)-1] == '-' {
		return fmt.Errorf("%w: a container has 3 to 63 small letters, digits and single hyphens", ErrName)
	}
	return nil
}

func checkBlobName(name string) error {
	if name == "" || len(name) > MaxNameBytes || !utf8.ValidString(name) {
		return fmt.Errorf("%w: a blob has 1 to %d bytes of UTF-8", ErrName, MaxNameBytes)
	}
	return nil
}

// checkMetadata wants names that are identifiers, as they are elements of a list, and
// values that a header can carry.
func checkMetadata(all map[string]string) error {
	bytes := 0
	for name, value := range all {
		bytes += len(name) + len(value)
		if !isIdentifier(name) {
			return fmt.Errorf("%w: %.64q is no identifier", ErrMetadata, name)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }) {
			return fmt.Errorf("%w: the value of %.64q is no text", ErrMetadata, name)
		}
	}
	if bytes > MaxMetadataBytes {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrMetadata, bytes, MaxMetadataBytes)
	}
	return nil
}

// check gives the reason why what is said of a blob is not allowed; nil if it is.
func (c Content) check() error {
	p := c.Properties
	bytes := len(p.ContentType) + len(p.ContentEncoding) + len(p.ContentLanguage) + len(p.ContentDisposition) + len(p.CacheControl)
	if bytes > MaxPropertiesBytes {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrProperties, bytes, MaxPropertiesBytes)
	}
	return checkMetadata(c.Metadata)
}

func isIdentifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

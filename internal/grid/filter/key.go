package filter

import (
	"slices"
	"strings"
)

// key is what a condition asks about: an attribute of the envelope, or a path in the data.
type key struct {
	// name is an attribute's, folded; empty for data.
	name string
	// path leads from data inwards; empty is data itself.
	path []string
}

func parseKey(text string) (key, *problem) {
	parts := strings.Split(text, ".")
	if slices.Contains(parts, "") {
		if text == "" {
			return key{}, wrong(nil, "it has no key")
		}
		return key{}, wrong(nil, "the key %.60q has an empty part: parts have single dots in between", text)
	}
	name := foldString(parts[0])
	switch {
	case len(parts) > MaxKeyParts:
		// To follow one is work at each level, for each event.
		return key{}, wrong(nil, "the key %.60q has %d parts, at most %d are allowed", text, len(parts), MaxKeyParts)
	case name == "data":
		return key{path: parts[1:]}, nil
	case len(parts) > 1:
		return key{}, wrong(nil, "the key %.60q leads nowhere, because only data has parts; did you mean %.60q?", text, "data."+text)
	}
	return key{name: name}, nil
}

func (k key) equal(other key) bool {
	return k.name == other.name && slices.Equal(k.path, other.path)
}

// String is one text for one key.
func (k key) String() string {
	if k.name != "" {
		return k.name
	}
	return strings.Join(append([]string{"data"}, k.path...), ".")
}

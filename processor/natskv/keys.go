package natskv

import (
	"strings"

	"github.com/eventyard/eventyard/processor"
)

// folder is what the keys of a group begin with, ending in a dot.
func folder(g processor.Group) string {
	g = g.Canonical()
	return token(g.Namespace) + "." + token(g.Hub) + "." + token(g.Group) + "."
}

func leaseKey(g processor.Group, partition string) string {
	return folder(g) + "lease." + token(partition)
}

func checkpointKey(g processor.Group, partition string) string {
	return folder(g) + "checkpoint." + token(partition)
}

// entryPath is the key of an entry. A segment is a token, so that what lies under a prefix
// is what a wildcard finds.
func entryPath(g processor.Group, key string) string {
	segments := strings.Split(key, "/")
	for i, s := range segments {
		segments[i] = token(s)
	}
	return folder(g) + "fact." + strings.Join(segments, ".")
}

const hex = "0123456789ABCDEF"

// token makes one token of any text: letters, digits, '-' and '_' stand for themselves,
// any other byte is '=' and two digits, and nothing at all is '='.
func token(text string) string {
	if text == "" {
		return "="
	}
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			b.WriteByte('=')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// text is what a token was made of.
func text(token string) string {
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		if token[i] == '=' && i+2 < len(token) {
			b.WriteByte(byte(strings.IndexByte(hex, token[i+1])<<4 | strings.IndexByte(hex, token[i+2])))
			i += 2
		} else if token[i] != '=' {
			b.WriteByte(token[i])
		}
	}
	return b.String()
}

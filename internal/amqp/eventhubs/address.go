package eventhubs

import (
	"net/url"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
)

// node is the kind of thing that a link's address names.
type node uint8

const (
	// nodeNone: the address names nothing at all.
	nodeNone node = iota
	// nodeClaims is $cbs, where tokens are put.
	nodeClaims
	// nodeManagement is $management, where hubs and partitions are asked about.
	nodeManagement
	// nodeYard is $yard, where processors keep what they share: no node of Event Hubs.
	nodeYard
	// nodeHub is a hub, or something inside one.
	nodeHub
)

// The words between the names in an address. Clients write them in any case.
const (
	wordPartitions = "Partitions"
	wordGroups     = "ConsumerGroups"
	wordPublishers = "Publishers"
	wordClaims     = "$cbs"
	wordManagement = "$management"
	wordYard       = groupwire.Node
)

// address is what a link's address or a token's audience names.
type address struct {
	node node
	hub  string
	// group, partition and publisher are empty where the address has none. A publisher's name is
	// the partition key of what it sends.
	group, partition, publisher string
}

// parseAddress reads the address of a link in all the forms that clients have for it: a
// path with or without a slash before it, or a whole URL, escaped or not.
func parseAddress(text string) address {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		_, text, _ = strings.Cut(rest, "/")
	}
	// What is no valid escape stands for itself: no name has a percent sign, so that it
	// will not be found, and is shown as the client wrote it.
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return parsePath(strings.Trim(text, "/"))
}

// parsePath reads an address without host and escapes.
//
// Names of hubs and groups may hold slashes themselves. So the words between them are
// looked for from the right: what stands to the left of the leftmost word is the hub.
func parsePath(path string) address {
	if path == "" {
		return address{}
	}
	if rest, ok := cutLastWord(path, wordManagement); ok {
		return address{node: nodeManagement, hub: rest}
	}
	if rest, ok := cutLastWord(path, wordYard); ok {
		return address{node: nodeYard, hub: rest}
	}
	if strings.EqualFold(path, wordClaims) {
		return address{node: nodeClaims}
	}
	a := address{node: nodeHub}
	path, a.partition = cutPair(path, wordPartitions)
	path, a.publisher = cutPair(path, wordPublishers)
	a.hub, a.group = cutGroup(path)
	return a
}

// parseAudience reads what a token is put for, as it is judged. What is no audience names nothing.
func parseAudience(uri string) address {
	path, err := auth.PathAsWritten(uri)
	if err != nil {
		return address{}
	}
	return parsePath(path)
}

// cutLastWord takes a word off the path's end.
func cutLastWord(path, word string) (rest string, ok bool) {
	at := len(path) - len(word)
	if at < 0 || !strings.EqualFold(path[at:], word) || at > 0 && path[at-1] != '/' {
		return path, false
	}
	return strings.Trim(path[:at], "/"), true
}

// cutPair takes a word and the name behind it off the path's end.
func cutPair(path, word string) (rest, name string) {
	at := strings.LastIndexByte(path, '/')
	if at < 0 {
		return path, ""
	}
	rest, ok := cutLastWord(strings.TrimRight(path[:at], "/"), word)
	if !ok || rest == "" {
		return path, ""
	}
	return rest, path[at+1:]
}

// cutGroup takes the group off the path's end. Its name may be several segments, so the
// last of the words counts that has a name on both sides.
func cutGroup(path string) (hub, group string) {
	for end := len(path); ; {
		at := strings.LastIndexByte(path[:end], '/')
		if at < 0 {
			return path, ""
		}
		if rest, ok := cutLastWord(path[:at], wordGroups); ok && rest != "" {
			return rest, strings.Trim(path[at:], "/")
		}
		end = at
	}
}

// path is the address in its usual form, to be shown.
func (a address) path() string {
	parts := []string{a.hub}
	if a.group != "" {
		parts = append(parts, wordGroups, a.group)
	}
	if a.publisher != "" {
		parts = append(parts, wordPublishers, a.publisher)
	}
	if a.partition != "" {
		parts = append(parts, wordPartitions, a.partition)
	}
	switch a.node {
	case nodeManagement:
		parts = append(parts, wordManagement)
	case nodeYard:
		parts = append(parts, wordYard)
	}
	return strings.Trim(strings.Join(parts, "/"), "/")
}

// scope is the address in the form that rights are judged by: with the hub that the link
// will work on.
func (a address) scope() auth.Entity {
	switch {
	case a.node == nodeManagement:
		return auth.At(a.hub, wordManagement)
	case a.node == nodeYard:
		return auth.At(a.hub, wordYard)
	case a.group != "":
		return auth.At(a.hub, wordGroups, a.group, wordPartitions, a.partition)
	case a.publisher != "":
		return auth.At(a.hub, wordPublishers, a.publisher)
	case a.partition != "":
		return auth.At(a.hub, wordPartitions, a.partition)
	}
	return auth.At(a.hub)
}

package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// foreignFolders finds dead-letter folders that the yard would refuse to write to: those that are
// neither in the data folder nor in one that was allowed. It looks at the disk, for links.
func (c Config) foreignFolders() (found complaints) {
	for i, s := range c.Subscriptions {
		kind, dir, _ := strings.Cut(strings.TrimSpace(deref(s.DeadLetter)), ":")
		if !strings.EqualFold(kind, "folder") || dir == "" || c.mayHold(dir) {
			continue
		}
		found.add(fmt.Sprintf("subscriptions[%d].deadLetter", i),
			"folder %s is not inside the data folder %s: name one inside, like folder:dead, or allow it with grid.deadFolders", dir, c.Data)
	}
	return found
}

// mayHold reports whether dead letters may be in a folder, as far as that is known.
func (c Config) mayHold(dir string) bool {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(c.Data, dir)
	}
	for _, outer := range append(c.Grid.Folders(), c.Data) {
		if isWithin(outer, dir) || isWithin(resolved(outer), resolved(dir)) {
			return true
		}
	}
	return false
}

func isWithin(outer, dir string) bool {
	base, err := filepath.Abs(outer)
	if err != nil {
		return true // nobody can tell
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return true
	}
	rest, err := filepath.Rel(base, dir)
	return err == nil && filepath.IsLocal(rest)
}

// resolved follows links, as far as the path exists.
func resolved(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	if parent := filepath.Dir(dir); parent != dir {
		return filepath.Join(resolved(parent), filepath.Base(dir))
	}
	return dir
}

// yardEvents is the topic that every yard has.
const yardEvents = "yard-events"

// use is a topic or hub that the file names, and what becomes of who names it where there is none.
type use struct{ key, kind, name, without string }

const (
	waits     = "the subscription waits until the yard has"
	refused   = "the subscription is refused unless the yard has"
	noStart   = "the yard does not start unless it has"
	hubPrefix = "hub:"
)

// What poison may be besides a hub, and the end of the name of the hub that a function makes for it.
const (
	topicPrefix = "topic:"
	noPoison    = "none"
	ownPoison   = "-poison"
)

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(one string) bool { return strings.EqualFold(one, name) })
}

// uses are all topics and hubs that the file names.
func (c Config) uses() (all []use) {
	for i, s := range c.Subscriptions {
		key := func(name string) string { return fmt.Sprintf("subscriptions[%d].%s", i, name) }
		all = append(all, use{key("topic"), "topic", s.Topic, waits}, use{key("sourceHub"), "hub", s.SourceHub, waits})
		if s.Hub != nil {
			all = append(all, use{key("hub"), "hub", *s.Hub, refused})
		}
		if s.DeadLetter != nil {
			if hub, ok := strings.CutPrefix(*s.DeadLetter, hubPrefix); ok {
				all = append(all, use{key("deadLetter"), "hub", hub, refused})
			}
		}
	}
	var made []string // by functions that stand before
	for i, f := range c.Functions {
		key := fmt.Sprintf("functions[%d].", i)
		if !containsFold(made, f.Hub) {
			all = append(all, use{key + "hub", "hub", f.Hub, noStart})
		}
		switch target := deref(f.Poison); {
		case target == "" || strings.EqualFold(target, f.Name+ownPoison):
			made = append(made, f.Name+ownPoison)
		case strings.HasPrefix(target, topicPrefix):
			all = append(all, use{key + "poison", "topic", strings.TrimPrefix(target, topicPrefix), noStart})
		case !strings.EqualFold(target, noPoison) && !containsFold(made, target):
			all = append(all, use{key + "poison", "hub", target, noStart})
		}
	}
	for i, p := range c.Policies {
		all = append(all, use{fmt.Sprintf("policies[%d].hub", i), "hub", p.Hub, noStart})
	}
	return all
}

// declared are the names of topics and hubs that there will be, by their kind.
func (c Config) declared() map[string][]string {
	declared := map[string][]string{"topic": {yardEvents}}
	for _, t := range c.Topics {
		declared["topic"] = append(declared["topic"], t.Name)
	}
	for _, h := range c.Hubs {
		declared["hub"] = append(declared["hub"], h.Name)
	}
	return declared
}

// presumed are the hubs, or the topics, without which the yard does not start, as far as the file does not declare them.
func (l *loader) presumed(kind string) (names []string) {
	declared := l.config.declared()
	for _, u := range l.config.uses() {
		if u.kind == kind && u.without == noStart && u.undeclared(declared[kind]) != "" && !slices.Contains(names, u.name) {
			names = append(names, u.name)
		}
	}
	return names
}

// notes tells of topics and hubs that the file uses and does not declare: they may exist in the yard,
// or be misspelt.
func (l *loader) notes() (notes []string) {
	declared := l.config.declared()
	for _, u := range l.config.uses() {
		if text := u.undeclared(declared[u.kind]); text != "" {
			notes = append(notes, l.origin(u.key)+": "+u.key+": "+text)
		}
	}
	return notes
}

// undeclared says what to think of a name, or nothing where it is declared, or empty.
func (u use) undeclared(declared []string) string {
	if u.name == "" || containsFold(declared, u.name) {
		return ""
	}
	if near := DidYouMean(u.name, declared); near != "" {
		return fmt.Sprintf("%s is not declared in this file; did you mean %s?", u.name, near)
	}
	return fmt.Sprintf("%s is not declared in this file: %s a %s of that name", u.name, u.without, u.kind)
}

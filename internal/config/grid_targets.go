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

// notes tells of sources that the file does not declare: they may exist in the yard, or be
// misspelt.
func (l *loader) notes() (notes []string) {
	topics, hubs := []string{yardEvents}, []string{}
	for _, t := range l.config.Topics {
		topics = append(topics, t.Name)
	}
	for _, h := range l.config.Hubs {
		hubs = append(hubs, h.Name)
	}
	for i, s := range l.config.Subscriptions {
		for _, source := range []struct {
			key, kind, name string
			declared        []string
		}{{"topic", "topic", s.Topic, topics}, {"sourceHub", "hub", s.SourceHub, hubs}} {
			if text := undeclared(source.kind, source.name, source.declared); text != "" {
				key := fmt.Sprintf("subscriptions[%d].%s", i, source.key)
				notes = append(notes, l.origin(key)+": "+key+": "+text)
			}
		}
	}
	for i, f := range l.config.Functions {
		if text := undeclared("hub", f.Hub, hubs); text != "" {
			key := fmt.Sprintf("functions[%d].hub", i)
			text = strings.Replace(text, "the subscription waits until the yard has", "the yard does not start unless it has", 1)
			notes = append(notes, l.origin(key)+": "+key+": "+text)
		}
	}
	return notes
}

// undeclared says what to think of a name, or nothing where it is declared, or empty.
func undeclared(kind, name string, declared []string) string {
	if name == "" || slices.ContainsFunc(declared, func(one string) bool { return strings.EqualFold(one, name) }) {
		return ""
	}
	if near := DidYouMean(name, declared); near != "" {
		return fmt.Sprintf("%s is not declared in this file; did you mean %s?", name, near)
	}
	return fmt.Sprintf("%s is not declared in this file: the subscription waits until the yard has a %s of that name", name, kind)
}

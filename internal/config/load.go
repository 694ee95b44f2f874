package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// DefaultFile is read from the working folder when it is there and no other is named.
const DefaultFile = "eventyard.yaml"

// Variables that begin like settings and are none.
const (
	EnvConfig           = EnvPrefix + "CONFIG"            // names the file, as --config does
	EnvServer           = EnvPrefix + "SERVER"            // tells the other commands where the yard is
	EnvConnectionString = EnvPrefix + "CONNECTION_STRING" // tells the other commands by what key they are let in
	EnvCA               = EnvPrefix + "CA"                // tells them which authority to trust
)

// Sources is where a configuration comes from. The zero value reads DefaultFile if
// it is there, and nothing else.
type Sources struct {
	// File is what --config named; empty means EVENTYARD_CONFIG's, or DefaultFile.
	File string
	// Environ is the environment, as os.Environ gives it.
	Environ []string
	// Flags are the values given on the command line, by flag name.
	Flags map[string]string
	// ReservedNames are first path segments that no hub's name may have; nil means that
	// all may be used.
	ReservedNames []string
}

// Loaded is a configuration and how it came about.
type Loaded struct {
	Config Config
	// File is the file that was read, empty if there was none.
	File string
	// Warnings are things the user should look at and the yard can live with. Notes are for who
	// checks a file: they may be right or wrong, which the file alone does not tell.
	Warnings, Notes []string
	// Presumed are hubs that the file does not declare, and without which a yard does not start with it;
	// PresumedTopics are such topics.
	Presumed, PresumedTopics []string
}

// Load reads all sources and checks the result. Its error joins a *Problem for each
// thing that is wrong.
func Load(from Sources) (Loaded, error) {
	l := &loader{config: Default(), origins: map[string]string{}}
	environ := l.variables(from.Environ)
	named := cmp.Or(from.File, environ[EnvConfig])
	data, err := os.ReadFile(cmp.Or(named, DefaultFile))
	switch {
	case err == nil:
		l.file = cmp.Or(named, DefaultFile)
		l.read(data)
	case named != "" || !errors.Is(err, fs.ErrNotExist):
		return Loaded{}, fmt.Errorf("read configuration: %w", err)
	}
	l.overlay(environ, from.Flags)
	for _, c := range l.config.validate(from.ReservedNames) {
		l.complain(l.origin(c.key), c.key, c.reason)
	}
	for _, c := range l.config.foreignFolders() {
		l.complain(l.origin(c.key), c.key, c.reason)
	}
	if len(l.problems) > 0 {
		return Loaded{Warnings: l.warnings}, errors.Join(l.problems...)
	}
	return Loaded{Config: l.config, File: l.file, Warnings: l.warnings, Notes: l.notes(), Presumed: l.presumed("hub"), PresumedTopics: l.presumed("topic")}, nil
}

// loader is one Load under way.
type loader struct {
	config   Config
	file     string
	origins  map[string]string // where each setting was last given, by key
	warnings []string
	problems []error
}

// variables picks the settings out of the environment. An empty variable counts as
// not set, which is what compose files leave behind.
func (l *loader) variables(environ []string) map[string]string {
	known := []string{EnvConfig, EnvServer, EnvConnectionString, EnvCA}
	for _, s := range Settings() {
		known = append(known, s.Env)
	}
	found := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, EnvPrefix) || value == "":
		case slices.Contains(known, name):
			found[name] = value
		default:
			l.warnings = append(l.warnings, unknownVariable(name, known))
		}
	}
	return found
}

// unknownVariable is about one that begins as those of settings do. What they all begin with makes none of them alike.
func unknownVariable(name string, known []string) string {
	rests := make([]string, len(known))
	for i, one := range known {
		rests[i] = strings.TrimPrefix(one, EnvPrefix)
	}
	if near := DidYouMean(strings.TrimPrefix(name, EnvPrefix), rests); near != "" {
		return fmt.Sprintf("environment: %s is no setting, did you mean %s%s?", name, EnvPrefix, near)
	}
	return fmt.Sprintf("environment: %s is no setting: eventyard config doc lists them", name)
}

// read takes the content of a file in either format.
func (l *loader) read(data []byte) {
	read := l.readYAML
	if isEmulator(data) {
		read = l.readEmulator
	}
	var wrong *syntaxError
	switch err := read(data); {
	case errors.As(err, &wrong):
		l.complain(l.at(wrong.at), "", wrong.reason)
	case err != nil:
		l.complain(l.file, "", err.Error())
	}
}

// readYAML puts an eventyard.yaml into the configuration.
func (l *loader) readYAML(data []byte) error {
	root, err := parseYAML(data)
	if err != nil {
		return err
	}
	f := &filler{positions: map[string]position{}, unknown: func(at position, key, nearest string) {
		if nearest == "" { // a flag's name may have been written for a key within another
			nearest = DidYouMean(key, settingKeys())
		}
		reason := fmt.Sprintf("unknown key %q", key)
		if nearest != "" {
			reason += fmt.Sprintf(", did you mean %q?", nearest)
		}
		l.complain(l.at(at), "", reason)
	}}
	f.fill("", root, reflect.ValueOf(&l.config).Elem())
	for key, at := range f.positions {
		l.position(key, at)
	}
	l.complainAll(f.problems)
	return nil
}

// settingKeys are those of all settings, as log.level.
func settingKeys() (keys []string) {
	for _, s := range Settings() {
		keys = append(keys, s.Key)
	}
	return keys
}

// overlay puts variables over the file and flags over both.
func (l *loader) overlay(environ, flags map[string]string) {
	for _, s := range settingsOf(&l.config) {
		value, origin := environ[s.Env], s.Env
		if v, ok := flags[s.Flag]; ok {
			value, origin = v, flagMark+s.Flag
		} else if value == "" {
			continue
		}
		l.origins[s.Key] = origin
		if err := s.set(value); err != nil {
			l.complain(origin, "", err.Error())
		}
	}
}

func (l *loader) position(key string, at position) { l.origins[key] = l.at(at) }

func (l *loader) at(at position) string {
	file := filepath.Clean(l.file)
	if at.line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, at.line, at.column)
}

// origin is where a key was given; that of a hub's missing field is the hub's.
func (l *loader) origin(key string) string {
	for {
		if origin, ok := l.origins[key]; ok {
			return origin
		}
		i := strings.LastIndexByte(key, '.')
		if i < 0 {
			return "" // nobody has said it
		}
		key = key[:i]
	}
}

func (l *loader) complain(origin, key, reason string) {
	l.problems = append(l.problems, &Problem{Origin: origin, Key: key, Reason: reason})
}

func (l *loader) complainAll(problems []located) {
	for _, p := range problems {
		l.complain(l.at(p.at), p.key, p.reason)
	}
}

func (l *loader) warn(at position, text string) {
	l.warnings = append(l.warnings, l.at(at)+": "+text)
}

// Package paths keeps where a yard has its files out of what clients are told: the errors of the operating system and of
// storage name them, for the log.
package paths

import (
	"io/fs"
	"os"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Without is an error in its own words, without the paths of this machine and the names of files in
// the data folder: those are for the log.
func Without(err error) string {
	text := err.Error()
	for _, path := range named(err) {
		// Who wraps the error of the operating system names the file from the data folder on.
		for rest, more := path, true; more && rest != "" && rest != "."; _, rest, more = strings.Cut(rest, "/") {
			if rest == path || strings.Contains(rest, "/") {
				text = strings.ReplaceAll(text, rest, "a file of the yard")
			}
		}
	}
	return text
}

// named are the paths that an error, or what it wraps, has from the operating system or from storage.
func named(err error) (paths []string) {
	switch e := err.(type) {
	case *eventlog.CorruptError:
		paths = append(paths, e.Where)
	case *fs.PathError:
		paths = append(paths, e.Path)
	case *os.LinkError:
		paths = append(paths, e.Old, e.New)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			paths = append(paths, named(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			paths = append(paths, named(inner)...)
		}
	}
	return paths
}

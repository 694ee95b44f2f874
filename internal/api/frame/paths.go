package frame

import (
	"io/fs"
	"os"
	"strings"
)

// textOf is an error in its own words, without the paths of this machine: those are for the log.
func textOf(err error) string {
	text := err.Error()
	for _, path := range pathsIn(err) {
		if path != "" && path != "." {
			text = strings.ReplaceAll(text, path, "a file of the yard")
		}
	}
	return text
}

// pathsIn are those that an error, or what it wraps, has from the operating system.
func pathsIn(err error) (paths []string) {
	switch e := err.(type) {
	case *fs.PathError:
		paths = append(paths, e.Path)
	case *os.LinkError:
		paths = append(paths, e.Old, e.New)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			paths = append(paths, pathsIn(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			paths = append(paths, pathsIn(inner)...)
		}
	}
	return paths
}

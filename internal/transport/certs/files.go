package certs

import (
	"crypto/tls"
	"fmt"
	"os"
	"time"
)

// FileError: files that the operator has named cannot be used.
type FileError struct {
	What string // they are
	Err  error
}

func (e *FileError) Error() string { return e.What + ": " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// files is a certificate that the operator provides.
type files struct {
	cfg  Config
	seen [2]os.FileInfo // of certificate and key when they were last loaded, or tried to be
}

func (f *files) changed() bool {
	for i, info := range f.look() {
		if !sameFile(info, f.seen[i]) {
			return true
		}
	}
	return false
}

// look notes the state of the files; nil for one that is not there.
func (f *files) look() [2]os.FileInfo {
	cert, _ := os.Stat(f.cfg.CertFile)
	key, _ := os.Stat(f.cfg.KeyFile)
	return [2]os.FileInfo{cert, key}
}

func sameFile(x, y os.FileInfo) bool {
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	return os.SameFile(x, y) && x.ModTime().Equal(y.ModTime()) && x.Size() == y.Size()
}

// soon is how long before its end a certificate of the operator's is worth a warning.
const soon = 14 * 24 * time.Hour

// load looks before it reads: a change in between is seen by the next look. A failed load
// is tried again only when the files have changed, and reported only once.
func (f *files) load() (*tls.Certificate, error) {
	f.seen = f.look()
	pair, err := readPair(f.cfg.CertFile, f.cfg.KeyFile, f.cfg.Keys)
	if err != nil {
		return nil, &FileError{fmt.Sprintf("certificate %s with key %s", f.cfg.CertFile, f.cfg.KeyFile), err}
	}
	if time.Until(pair.Leaf.NotAfter) < soon {
		f.cfg.Log.Warn("certificate ends soon or has ended", "file", f.cfg.CertFile, "until", pair.Leaf.NotAfter)
	}
	return &pair, nil
}

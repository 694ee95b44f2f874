package certs

import (
	"cmp"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// Keys seal private keys, so that a copy of the data folder without the secret key gives them to
// nobody. The name is of what is sealed: it can be opened under that name only.
type Keys interface {
	Seal(name string, value []byte) []byte
	// Open also tells whether the newest key has sealed it.
	Open(name string, value []byte) (opened []byte, newest bool, err error)
}

// sealedBlock is a PEM block with another in it, sealed. Certificates stay in clear: clients are
// given them.
const sealedBlock = "EVENTYARD SEALED KEY"

func isSecret(b *pem.Block) bool { return strings.HasSuffix(b.Type, "PRIVATE KEY") }

func sealedAs(file string) string { return "tls/" + filepath.Base(file) }

// SealKeys seals those private keys of the yard's own that are not sealed with the newest key: in
// clear from before they were sealed, or put there so, or sealed before a rotation. It is for each
// start, with a listener with TLS or without: a later one may have the newest key only. What cannot
// be sealed stays as it is, and the log says so. Without keys nothing happens, nor to the operator's
// file, nor where there is no folder.
func SealKeys(cfg Config) {
	if cfg.Keys == nil || cfg.Dir == "" {
		return
	}
	log := cmp.Or(cfg.Log, slog.Default())
	operators, _ := os.Stat(cfg.KeyFile)
	for _, name := range []string{caKeyFile, keyFile} {
		file := cfg.own(name)
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) || os.SameFile(info, operators) {
			continue
		}
		blocks, safe, err := readBlocks(file, cfg.Keys)
		if err == nil && safe {
			continue
		}
		if err == nil {
			err = writeBlocks(file, 0o600, cfg.Keys, blocks...)
		}
		if err != nil {
			log.Warn("private key could not be sealed, a later start tries again: keep older secret keys until then", "file", file, "error", err)
			continue
		}
		log.Info("private key was sealed with the newest secret key", "file", file)
	}
}

// InClear tells whether a file's content has a private key that is not sealed.
func InClear(content []byte) bool {
	for {
		var b *pem.Block
		if b, content = pem.Decode(content); b == nil {
			return false
		}
		if isSecret(b) {
			return true
		}
	}
}

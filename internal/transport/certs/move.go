package certs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// ReadAuthority gives the authority that a yard has made in a folder, in the form in which an
// AuthorityStore has it. It holds the private key in clear. The error is fs.ErrNotExist where there is
// none, or its key is not there.
func ReadAuthority(dir string, keys Keys) ([]byte, error) {
	ca, err := readAuthority(filepath.Join(dir, caFile), filepath.Join(dir, caKeyFile), keys)
	if err != nil {
		return nil, err
	}
	if ca.key == nil {
		return nil, fmt.Errorf("%s: %w", caKeyFile, fs.ErrNotExist)
	}
	return ca.encode()
}

// WriteAuthority puts an authority of an AuthorityStore into a folder, which is there, for a yard that
// makes its certificates in it. The private key is sealed.
func WriteAuthority(dir string, text []byte, keys Keys) error {
	if keys == nil {
		return errors.New("a private key is not written in clear")
	}
	ca, err := parseAuthority(text)
	if err == nil {
		err = writeKey(filepath.Join(dir, caKeyFile), keys, ca.key, ca.cert)
	}
	if err == nil {
		err = writeCert(filepath.Join(dir, caFile), ca.cert)
	}
	return err
}

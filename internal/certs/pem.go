package certs

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	certBlock = "CERTIFICATE"
	keyBlock  = "PRIVATE KEY"
)

func readCert(file string) (*x509.Certificate, error) {
	der, err := readBlock(file, certBlock)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return cert, nil
}

func readKey(file string) (crypto.Signer, error) {
	der, err := readBlock(file, keyBlock)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("read %s: a key of type %T signs nothing", file, key)
	}
	return signer, nil
}

// readBlock gives the first block of a kind.
func readBlock(file, kind string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil, fmt.Errorf("read %s: it holds no PEM block %q", file, kind)
		}
		if block.Type == kind {
			return block.Bytes, nil
		}
	}
}

func writeCert(file string, cert *x509.Certificate) error {
	return writeBlock(file, certBlock, cert.Raw, 0o644)
}

func writeKey(file string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return writeBlock(file, keyBlock, der, 0o600)
}

// writeBlock replaces a file as a whole: who reads it sees the old or the new, and so
// does who starts after a crash.
func writeBlock(file, kind string, der []byte, mode fs.FileMode) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	if err := fill(temp, kind, der, mode); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(temp.Name(), file); err != nil {
		return err
	}
	syncFolder(filepath.Dir(file))
	return nil
}

// syncFolder makes a rename last, so that after a power cut a certificate is not there
// without its key. Not every system can; where it cannot, both are made anew.
func syncFolder(folder string) {
	if f, err := os.Open(folder); err == nil {
		f.Sync()
		f.Close()
	}
}

// fill closes the file in any case.
func fill(file *os.File, kind string, der []byte, mode fs.FileMode) error {
	return errors.Join(
		file.Chmod(mode),
		pem.Encode(file, &pem.Block{Type: kind, Bytes: der}),
		file.Sync(),
		file.Close(),
	)
}

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

// errNoBlock: a file has none of the kind.
var errNoBlock = errors.New("it holds no PEM block")

// readBlock gives the first block of a kind.
func readBlock(file, kind string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil, fmt.Errorf("read %s: %w %q", file, errNoBlock, kind)
		}
		if block.Type == kind {
			return block.Bytes, nil
		}
	}
}

func writeCert(file string, cert *x509.Certificate) error {
	return writeBlocks(file, 0o644, block(cert))
}

// writeKey may take the certificate of the key along, so that the two are one file.
func writeKey(file string, key crypto.Signer, with ...*x509.Certificate) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	blocks := []*pem.Block{{Type: keyBlock, Bytes: der}}
	for _, cert := range with {
		blocks = append(blocks, block(cert))
	}
	return writeBlocks(file, 0o600, blocks...)
}

func block(cert *x509.Certificate) *pem.Block { return &pem.Block{Type: certBlock, Bytes: cert.Raw} }

// writeBlocks replaces a file as a whole: who reads it sees the old or the new, and so
// does who starts after a crash.
func writeBlocks(file string, mode fs.FileMode, blocks ...*pem.Block) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	err = temp.Chmod(mode)
	for _, b := range blocks {
		err = errors.Join(err, pem.Encode(temp, b))
	}
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(temp.Name(), file); err != nil {
		return err
	}
	// The rename has to last, so that after a power cut what was written later is not there
	// without what was written first. Not every system can sync a folder; where it cannot, the
	// next start mends the files.
	if folder, err := os.Open(filepath.Dir(file)); err == nil {
		folder.Sync()
		folder.Close()
	}
	return nil
}

package certs

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	certBlock = "CERTIFICATE"
	keyBlock  = "PRIVATE KEY"
)

func readCert(file string) (*x509.Certificate, error) {
	der, err := readBlock(file, nil, certBlock)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return cert, nil
}

func readKey(file string, keys Keys) (crypto.Signer, error) {
	der, err := readBlock(file, keys, keyBlock)
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
func readBlock(file string, keys Keys, kind string) ([]byte, error) {
	blocks, _, err := readBlocks(file, keys)
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		if b.Type == kind {
			return b.Bytes, nil
		}
	}
	return nil, fmt.Errorf("read %s: %w %q", file, errNoBlock, kind)
}

// readBlocks gives all blocks, with the sealed ones opened if there are keys, and whether every
// private key is sealed with the newest of them.
func readBlocks(file string, keys Keys) (blocks []*pem.Block, safe bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, false, err
	}
	safe = true
	for {
		var b *pem.Block
		if b, text = pem.Decode(text); b == nil {
			return blocks, safe, nil
		}
		newest := !isSecret(b)
		if b.Type == sealedBlock && keys != nil {
			var inner []byte
			if inner, newest, err = keys.Open(sealedAs(file), b.Bytes); err != nil {
				return nil, false, fmt.Errorf("read %s: %w", file, err)
			}
			if b, _ = pem.Decode(inner); b == nil {
				return nil, false, fmt.Errorf("read %s: %w in what is sealed", file, errNoBlock)
			}
		}
		blocks, safe = append(blocks, b), safe && newest
	}
}

func readPair(certFile, keyFile string, keys Keys) (tls.Certificate, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	blocks, _, err := readBlocks(keyFile, keys)
	if err != nil {
		return tls.Certificate{}, err
	}
	var key []byte
	for _, b := range blocks {
		key = append(key, pem.EncodeToMemory(b)...)
	}
	if b, _ := pem.Decode(cert); b == nil {
		return tls.Certificate{}, fmt.Errorf("%s has no certificate in it, as PEM", certFile)
	}
	if len(key) == 0 {
		return tls.Certificate{}, fmt.Errorf("%s has no private key in it, as PEM", keyFile)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, errors.New(strings.TrimPrefix(err.Error(), "tls: ")) // whose words are plain, but for that
	}
	return pair, nil
}

func writeCert(file string, cert *x509.Certificate) error {
	return writeBlocks(file, 0o644, nil, block(cert))
}

// writeKey may take the certificate of the key along, so that the two are one file.
func writeKey(file string, keys Keys, key crypto.Signer, with ...*x509.Certificate) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	blocks := []*pem.Block{{Type: keyBlock, Bytes: der}}
	for _, cert := range with {
		blocks = append(blocks, block(cert))
	}
	return writeBlocks(file, 0o600, keys, blocks...)
}

func block(cert *x509.Certificate) *pem.Block { return &pem.Block{Type: certBlock, Bytes: cert.Raw} }

// writeBlocks replaces a file as a whole: who reads it sees the old or the new, and so
// does who starts after a crash. Private keys are sealed if there are keys for it.
func writeBlocks(file string, mode fs.FileMode, keys Keys, blocks ...*pem.Block) (err error) {
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
		if isSecret(b) && keys != nil {
			b = &pem.Block{Type: sealedBlock, Bytes: keys.Seal(sealedAs(file), pem.EncodeToMemory(b))}
		}
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

package parts

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// azuriteManifest pins what npm installs.
const azuriteManifest = `{
  "name": "eventyard-azurite",
  "private": true,
  "dependencies": {"azurite": "3.35.0"}
}
`

// BlobService is an Azurite of one test: Azure's blob service, in memory.
type BlobService struct {
	URL     string // without the account
	Account string
	Key     string
}

var azuriteListens = regexp.MustCompile(`listens on (http://\S+)`)

// Azurite starts a blob service with one account and stops it at the test's end.
func Azurite(t testing.TB) *BlobService {
	t.Helper()
	program := AzuriteProgram(t)
	dir, err := os.MkdirTemp("", "eventyard-azurite-")
	if err != nil {
		t.Fatal(err)
	}
	b := &BlobService{
		Account: "yardtest",
		Key:     base64.StdEncoding.EncodeToString([]byte("the key of an account for tests, which is no secret")),
	}
	process, err := guard(dir, "KILL", nil, "env", "AZURITE_ACCOUNTS="+b.Account+":"+b.Key,
		program, "--blobHost", "127.0.0.1", "--blobPort", "0",
		"--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.remove(); err != nil {
			t.Errorf("remove Azurite: %v", err)
		}
	})
	if err := process.await(func() bool { return azuriteListens.MatchString(process.log()) }); err != nil {
		t.Fatalf("start Azurite: %v", err)
	}
	b.URL = azuriteListens.FindStringSubmatch(process.log())[1]
	return b
}

// AzuriteProgram is the program, installed: for tests that have to have it before they
// go where nothing can be fetched.
func AzuriteProgram(t testing.TB) string {
	t.Helper()
	dir := Component{"azurite", azuriteManifest, func(ctx context.Context, dir string) error {
		return NodePackages(ctx, dir, azuriteManifest)
	}}.Folder(t)
	return filepath.Join(dir, "node_modules", ".bin", "azurite-blob")
}

// NodePackages installs what a package.json names.
func NodePackages(ctx context.Context, dir, manifest string) error {
	if err := Need("node", "nodejs"); err != nil {
		return err
	}
	if err := Need("npm", "npm"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(manifest), 0o644); err != nil {
		return err
	}
	return Step(ctx, dir, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
}

// Endpoint is the account's address.
func (b *BlobService) Endpoint() string { return b.URL + "/" + b.Account }

// Connection is the account's connection string.
func (b *BlobService) Connection() string {
	return strings.Join([]string{
		"DefaultEndpointsProtocol=http", "AccountName=" + b.Account, "AccountKey=" + b.Key,
		"BlobEndpoint=" + b.Endpoint(),
	}, ";")
}

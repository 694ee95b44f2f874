package parts

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// axeManifest pins what npm installs.
const axeManifest = `{
  "name": "eventyard-axe",
  "private": true,
  "dependencies": {"axe-core": "4.14.0"}
}
`

// Axe is the script that looks for what keeps people from using a page: contrast, names, roles.
func Axe(t testing.TB) string {
	t.Helper()
	dir := Component{"axe", axeManifest, func(ctx context.Context, dir string) error {
		return NodePackages(ctx, dir, axeManifest)
	}}.Folder(t)
	script, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

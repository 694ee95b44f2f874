//go:build !linux || !(amd64 || arm64)

package bolt

import "fmt"

func runStorageChild(mode string, _ []string) error { return fmt.Errorf("unknown part %q", mode) }

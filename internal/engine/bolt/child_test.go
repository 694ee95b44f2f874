package bolt

import "os"

// runChild plays the part that childMode names.
func runChild(mode string) error {
	if mode == "write" {
		return writeUntilKilled(os.Args[1:])
	}
	return runStorageChild(mode, os.Args[1:])
}

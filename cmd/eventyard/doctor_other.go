//go:build !unix

package main

import (
	"errors"
	"os"
)

// canWrite tries it, for want of a question to ask.
func canWrite(dir string) error {
	f, err := os.CreateTemp(dir, "eventyard-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func space(string) (free, total int64, err error) { return 0, 0, errors.ErrUnsupported }

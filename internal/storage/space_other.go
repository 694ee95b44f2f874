//go:build !unix

package storage

import "errors"

// Space is not known here.
func Space(string) (free, total int64, err error) { return 0, 0, errors.ErrUnsupported }

package access

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
)

// check reports whether a policy may be made as it is asked for.
func check(p Policy) error {
	if err := auth.CheckPolicyName(p.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if part := auth.AmbiguousPart(p.Name); part != "" {
		return fmt.Errorf("%w: the name %.80q has %q in it: choose one without", ErrInvalid, p.Name, part)
	}
	if p.Rights == 0 || p.Rights&^(auth.Manage|auth.Metrics) != 0 {
		return fmt.Errorf("%w: name at least one right of Send, Listen, Manage and Metrics", ErrInvalid)
	}
	if p.Hub != "" && p.Rights.Has(auth.Metrics) {
		return fmt.Errorf("%w: Metrics are those of the whole yard: make the policy one of the namespace, without a hub", ErrInvalid)
	}
	if err := checkQuota(p.Quota); err != nil {
		return err
	}
	for _, key := range []string{p.Primary, p.Secondary} {
		if key == "" {
			continue
		}
		if err := auth.CheckKey(key); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return nil
}

func checkQuota(l quota.Limit) error {
	if l.Events < 0 || l.Bytes < 0 {
		return fmt.Errorf("%w: a quota of %d events and %d bytes: use 0 for no limit", ErrInvalid, l.Events, l.Bytes)
	}
	return nil
}

// newKey is 256 random bits, written as Azure writes its keys.
func newKey() string {
	var bits [32]byte
	rand.Read(bits[:]) // never fails
	return base64.StdEncoding.EncodeToString(bits[:])
}

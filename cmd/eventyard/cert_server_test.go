package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// A fingerprint is read as it is shown, and as other programs write it; nothing shorter or longer is one.
func TestFingerprints(t *testing.T) {
	sum := sha256.Sum256([]byte("a certificate"))
	shown := showFingerprint(sum[:])
	for text, want := range map[string]bool{
		shown: true, " " + shown + "\n": true, hex.EncodeToString(sum[:]): true,
		"": false, "00:11": false, "00:" + shown: false, shown[3:]: false, "xx" + shown[2:]: false,
	} {
		got, ok := readFingerprint(text)
		testkit.Equal(t, ok, want, "%q is one", text)
		testkit.That(t, !ok || bytes.Equal(got, sum[:]), "%q is read as %x", text, got)
	}
}

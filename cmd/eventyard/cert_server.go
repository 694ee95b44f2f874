package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// exportFrom writes the authority of the yard at a URL.
func (c certCommands) exportFrom(ctx context.Context, server, fingerprint string, args []string) error {
	content, err := fetchAuthority(ctx, server)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return &admin.StrangerError{Server: server}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return &admin.StrangerError{Server: server}
	}
	sum := sha256.Sum256(cert.Raw)
	want, ok := readFingerprint(fingerprint)
	if fingerprint != "" && (!ok || !bytes.Equal(sum[:], want)) {
		return &advisedError{
			fmt.Sprintf("the authority at %s has the fingerprint %s, and not the one that was given", server, showFingerprint(sum[:])),
			"it is another yard, or somebody is in between: ask at the yard's own machine",
		}
	}
	fmt.Fprintf(c.stderr, "sha256 %s\n", showFingerprint(sum[:]))
	return c.writeAuthority(pem.EncodeToMemory(block), "eventyard-ca.pem", args)
}

// fetchTimeout is how long a yard may take to answer.
const fetchTimeout = 30 * time.Second

// fetchAuthority asks a yard, whoever it is: what would prove that is what is asked for.
func fetchAuthority(ctx context.Context, server string) ([]byte, error) {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+"/api/v1/ca.pem", nil)
	if err != nil {
		return nil, &advisedError{fmt.Sprintf("--server: %q is no server", server), "write it like " + admin.DefaultServer}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	transport.DisableKeepAlives = true
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, &admin.UnreachableError{Server: server, Err: errors.Unwrap(err)}
	}
	defer response.Body.Close()
	const mostRead = 64 << 10
	content, err := io.ReadAll(io.LimitReader(response.Body, mostRead))
	if err != nil {
		return nil, &admin.UnreachableError{Server: server, Err: err}
	}
	if response.StatusCode == http.StatusOK {
		return content, nil
	}
	var problem admin.Problem
	if json.Unmarshal(content, &problem) != nil || problem.Title == "" {
		return nil, &admin.StrangerError{Server: server, Status: response.Status}
	}
	return nil, &problem
}

// showFingerprint writes a hash as certificates are shown with it.
func showFingerprint(sum []byte) string { return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":") }

// readFingerprint takes hexadecimal digits, with or without colons.
func readFingerprint(text string) ([]byte, bool) {
	sum, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), ":", ""))
	return sum, err == nil && len(sum) == sha256.Size
}

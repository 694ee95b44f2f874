//go:build linux

package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// azurite is a blob service that the official checkpoint stores write to.
type azurite struct{ *parts.BlobService }

func startAzurite(t *testing.T) azurite {
	t.Helper()
	return azurite{parts.Azurite(t)}
}

// front serves the blob service over TLS to clients that bring any bearer token at all:
// Azurite itself wants one of a known issuer, and the Go library's tests bring the word
// "Sanitized". The front takes it away and signs the request for the account instead.
// It returns the account's address and the file of the certificate to trust.
func (a azurite) front(t *testing.T, host string) (address, certificate string) {
	t.Helper()
	target, err := url.Parse(a.URL)
	testkit.Must(t, err)
	proxy := &httputil.ReverseProxy{
		ErrorLog: log.New(io.Discard, "", 0), // clients give up requests all the time
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if strings.HasPrefix(r.In.Header.Get("Authorization"), "Bearer ") {
				r.Out.Header.Del("Authorization")
				r.Out.URL.RawQuery = r.In.URL.RawQuery + "&" + a.signature().Encode()
			}
		},
	}
	pair, certificate := selfSigned(t, host)
	listener, err := tls.Listen("tcp", net.JoinHostPort(namespaceAddress, "0"), &tls.Config{Certificates: []tls.Certificate{pair}})
	testkit.Must(t, err)
	server := &http.Server{Handler: proxy}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return "https://" + net.JoinHostPort(host, port) + "/" + a.Account + "/", certificate
}

// signature grants everything in the account for an hour, by the rules for
// storage's version 2018-11-09.
func (a azurite) signature() url.Values {
	const permissions, services, types, version = "rwdlacup", "b", "sco", "2018-11-09"
	until := time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04:05Z")
	key, _ := base64.StdEncoding.DecodeString(a.Key)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join([]string{a.Account, permissions, services, types, "", until, "", "", version, ""}, "\n")))
	return url.Values{
		"sp": {permissions}, "ss": {services}, "srt": {types}, "se": {until}, "sv": {version},
		"sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
}

// selfSigned makes a certificate for hosts, and a file of it for those who are to trust it.
func selfSigned(t *testing.T, hosts ...string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	testkit.Must(t, err)
	file := filepath.Join(t.TempDir(), "front.pem")
	testkit.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

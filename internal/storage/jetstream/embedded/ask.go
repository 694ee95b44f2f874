package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// askTime is how long another server may take to show its certificate.
const askTime = 3 * time.Second

// ErrStranger: who answers shows no certificate of the cluster for that address.
var ErrStranger = errors.New("it is none of this cluster's")

// Ask connects to the address for other servers, shows this one's certificate, and gives the name in
// that of who answers. Servers say nothing before certificates were shown, and nothing is asked of them.
func Ask(ctx context.Context, address string, own *tls.Config) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	plain, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer plain.Close()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	config := own.Clone()
	config.ServerName = host
	conn := tls.Client(plain, config)
	switch err := conn.HandshakeContext(ctx); {
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)):
		return "", fmt.Errorf("%w: %w", ErrStranger, err)
	case err != nil:
		return "", err
	}
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

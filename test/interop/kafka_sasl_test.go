//go:build linux

package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestKafkaSASL has foreign clients log in by SCRAM, which sends no key, by OAUTHBEARER with a signature, and one by a client
// certificate, send and read; a key that is not the policy's is refused. // K1, K5
func TestKafkaSASL(t *testing.T) {
	t.Parallel()
	mechanisms := []string{"SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}
	clients := map[string]func(t *testing.T, k kafkaTask){
		"franz-go": playFranz, "java-4.3.1": func(t *testing.T, k kafkaTask) { playKafkaJava(t, k, "4.3.1") },
		"confluent-kafka": func(t *testing.T, k kafkaTask) { playKafkaPython(t, k, "confluent.py") },
		"kafka-python":    func(t *testing.T, k kafkaTask) { playKafkaPython(t, k, "python.py") },
	}
	l := layout{outside: true, kafka: true, hubs: map[string]int{}}
	for name := range clients {
		for _, mechanism := range mechanisms {
			l.hubs[name+"-"+mechanism] = kafkaPartitions
		}
	}
	const certified = "confluent-kafka-certificate"
	l.hubs[certified] = kafkaPartitions
	certificate, key := clientCertificate(t, "manager")
	l.settings = append(l.settings, fmt.Sprintf("tls: {clientCaFile: %q}", certificate))
	y := startYard(t, l)
	signed := auth.Sign("sb://yard/", "manager", keyOf("manager"), time.Now().Add(time.Hour))
	for name, play := range clients {
		for _, mechanism := range mechanisms {
			if name == "kafka-python" && mechanism == "OAUTHBEARER" {
				continue // python.py makes no tokens
			}
			t.Run(name+"-"+mechanism, func(t *testing.T) {
				t.Parallel()
				k := kafkaTask{
					address: y.hostPort(t, "kafkas"), hub: name + "-" + mechanism, codecs: []string{"none"}, ca: y.authority(t),
					mechanism: mechanism, user: "manager", password: keyOf("manager"), token: signed,
				}
				if mechanism == "OAUTHBEARER" {
					k.password = ""
				}
				y.plant(t, k.hub)
				play(t, k)
				if name == "franz-go" {
					k.password, k.token = keyOf("another"), "another"
					testkit.That(t, k.franz(t, kgo.RequestRetries(0)).Ping(t.Context()) != nil, "a wrong key lets in")
				}
			})
		}
	}
	t.Run(certified, func(t *testing.T) {
		t.Parallel()
		k := kafkaTask{
			address: y.hostPort(t, "kafkas"), hub: certified, codecs: []string{"none"}, ca: y.authority(t), certificate: certificate, key: key,
		}
		y.plant(t, k.hub)
		playKafkaPython(t, k, "confluent.py")
	})
}

// clientCertificate makes a client certificate of that name, which is its own authority: its file, and that of its key.
func clientCertificate(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private := testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der := testkit.Value(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	secret := testkit.Value(x509.MarshalPKCS8PrivateKey(private))(t)
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")
	testkit.Must(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	testkit.Must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return certificate, key
}

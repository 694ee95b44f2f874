//go:build linux

package interop

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestKafkaSASL has foreign clients log in by SCRAM, which sends no key, and by OAUTHBEARER with a signature, send and
// read; a key that is not the policy's is refused. // K1, K5
func TestKafkaSASL(t *testing.T) {
	t.Parallel()
	mechanisms := []string{"SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}
	clients := map[string]func(t *testing.T, k kafkaTask){
		"franz-go": playFranz, "java-4.3.1": func(t *testing.T, k kafkaTask) { playKafkaJava(t, k, "4.3.1") },
	}
	l := layout{outside: true, kafka: true, hubs: map[string]int{}}
	for name := range clients {
		for _, mechanism := range mechanisms {
			l.hubs[name+"-"+mechanism] = kafkaPartitions
		}
	}
	y := startYard(t, l)
	signed := auth.Sign("sb://yard/", "manager", keyOf("manager"), time.Now().Add(time.Hour))
	for name, play := range clients {
		for _, mechanism := range mechanisms {
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
}

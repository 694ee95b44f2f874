package main

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
)

// R5: what a restore or copy prints of where its yard is lets nobody in.
func TestWhatIsPrintedOfALocationHoldsNoSecret(t *testing.T) {
	engine := "nats://me:secret@a,b?system=admin:secret&yard=shop&monitor=http://me:secret@a:8222&systemcreds=file"
	given := copying{to: engine}
	_, err := (&copying{}).location("NATS://me:secret@a?system=admin:secret", "", server.Secrets{})
	for what, said := range map[string]string{
		"restore": howToServe(config.Config{Engine: engine, Replicas: 5}.EngineURL()), "copy": given.howToServe(), "what is no location": err.Error(),
	} {
		testkit.That(t, !strings.Contains(said, "secret@") && !strings.Contains(said, ":secret"), "%s prints %s", what, said)
	}
	testkit.Equal(t, howToServe(engine), "--engine 'nats://a,b?yard=shop&monitor=http://a:8222&systemcreds=file', with the same credentials and secret key")
	testkit.Equal(t, howToServe("data"), "--data data")
}

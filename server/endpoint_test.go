package server

import (
	"net/http"
	"os"
	"testing"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/internal/testkit"
)

func listenersAt(addresses map[string]string) (open openListeners) {
	for _, listener := range (config.Config{AMQP: Off, AMQPS: Off, HTTP: Off, HTTPS: Off, Kafka: Off, Kafkas: Off}).Listeners() {
		if address, ok := addresses[listener.Name]; ok {
			listener.Address = address
			open = append(open, openListener{Listener: listener})
		}
	}
	return open
}

// A connection string leads to the listener that its reader can reach and clients expect.
func TestWhereConnectionStringsLead(t *testing.T) {
	machine, err := os.Hostname()
	testkit.Check(t, err)
	for name, test := range map[string]struct {
		open     map[string]string
		host     string
		want     string
		emulator bool
	}{
		"development":              {map[string]string{"amqp": "127.0.0.1:5672", "amqps": "127.0.0.1:5671", "http": "127.0.0.1:8080"}, "yard", "sb://127.0.0.1/", true},
		"on another port":          {map[string]string{"amqp": "127.0.0.1:15672"}, "", "sb://127.0.0.1:15672/", true},
		"IPv6":                     {map[string]string{"amqp": "[::1]:5672"}, "", "sb://[::1]/", true},
		"development with TLS":     {map[string]string{"amqps": "127.0.0.1:5671", "http": "127.0.0.1:8080"}, "", "sb://127.0.0.1/", false},
		"development over HTTP":    {map[string]string{"http": "127.0.0.1:8080"}, "", "sb://127.0.0.1:8080/", true},
		"nothing":                  {nil, "", "sb://localhost/", false},
		"for others":               {map[string]string{"amqp": "127.0.0.1:5672", "amqps": "[::]:5671"}, "yard.example.com", "sb://yard.example.com/", false},
		"for others, plain":        {map[string]string{"amqp": "0.0.0.0:5672", "amqps": "127.0.0.1:5671"}, "yard", "sb://yard/", true},
		"for others, best":         {map[string]string{"amqp": "0.0.0.0:5672", "amqps": "0.0.0.0:15671"}, "yard", "sb://yard:15671/", false},
		"for others, WebSockets":   {map[string]string{"amqp": "127.0.0.1:5672", "https": "10.1.2.3:443"}, "", "sb://10.1.2.3/", false},
		"for others at an address": {map[string]string{"amqps": "10.1.2.3:5671"}, "", "sb://10.1.2.3/", false},
		"for others by our name":   {map[string]string{"amqps": "0.0.0.0:5671"}, "", "sb://" + machine + "/", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := listenersAt(test.open).connectTo(test.host); got.Endpoint != test.want || got.Emulator != test.emulator {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTheEndpointOfWhoAsks(t *testing.T) {
	request := &http.Request{Host: "asked.example.com:8443"}
	all := map[string]string{"amqp": "127.0.0.1:5672", "amqps": "0.0.0.0:5671", "https": "0.0.0.0:8443"}
	for name, test := range map[string]struct {
		open map[string]string
		host string
		tls  bool
		want string
	}{
		"by the name it used": {all, "", true, "sb://asked.example.com/"},
		"by the name we have": {all, "yard", true, "sb://yard/"},
		"here":                {all, "yard", false, "sb://127.0.0.1/"},
		"no such listener":    {map[string]string{"https": "0.0.0.0:8443"}, "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, listenersAt(test.open).endpointFor(test.host)(request, test.tls), test.want)
		})
	}
}

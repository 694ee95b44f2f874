package auth

import (
	"errors"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestParseConnectionString(t *testing.T) {
	root := ConnectionString{Endpoint: "sb://localhost/", Policy: RootPolicy, Key: "c2VjcmV0PT0="}
	with := func(change func(*ConnectionString)) ConnectionString {
		c := root
		change(&c)
		return c
	}
	tests := []struct {
		what, text string
		want       ConnectionString
	}{
		{"as the portal writes it", "Endpoint=sb://localhost/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0PT0=", root},
		{"in any order and case", "sharedaccesskey=c2VjcmV0PT0=;SHAREDACCESSKEYNAME=RootManageSharedAccessKey;endpoint=sb://localhost/", root},
		{"with blanks, line ends and more semicolons", " ;; Endpoint = sb://localhost ;\nSharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0PT0= ;;", root},
		{"with what other clients know", "Endpoint=sb://localhost/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0PT0=;TransportType=Amqp", root},
		{"with the scheme of AMQP", "Endpoint=amqps://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0PT0=", root},
		{"without a scheme", "Endpoint=localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0PT0=", root},
		{
			"with a port", "Endpoint=sb://localhost:5673;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0PT0=",
			with(func(c *ConnectionString) { c.Endpoint = "sb://localhost:5673/" }),
		},
		{
			"with an address of version 6", "Endpoint=sb://[::1]:5673;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0PT0=",
			with(func(c *ConnectionString) { c.Endpoint = "sb://[::1]:5673/" }),
		},
		{
			"of a hub", "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0PT0=;EntityPath=a/Orders",
			with(func(c *ConnectionString) { c.Hub = "a/Orders" }),
		},
		{
			"as the emulator's documents have it", "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
			with(func(c *ConnectionString) { c.Key, c.Emulator = DevelopmentKey, true }),
		},
		{"with the flag switched off", "Endpoint=localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0PT0=;UseDevelopmentEmulator=False", root},
		{
			"with a token in place of a key", "Endpoint=sb://localhost;SharedAccessSignature=" + goodToken,
			ConnectionString{Endpoint: "sb://localhost/", Signature: goodToken},
		},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, testkit.Value(ParseConnectionString(tt.text))(t), tt.want)
		})
	}
}

func TestConnectionStringErrorsSayWhatIsWrong(t *testing.T) {
	const endpoint, policy, key = "Endpoint=sb://h;", "SharedAccessKeyName=p;", "SharedAccessKey=HUSH;"
	tests := []struct{ what, text, says string }{
		{"nothing", "", "lacks Endpoint"},
		{"no endpoint", policy + key, "lacks Endpoint"},
		{"neither policy nor key", endpoint, "lacks SharedAccessKeyName and SharedAccessKey, or SharedAccessSignature"},
		{"no policy", endpoint + key, "lacks SharedAccessKeyName"},
		{"no key", endpoint + policy, "lacks SharedAccessKey"},
		{"an empty key", endpoint + policy + "SharedAccessKey=", "lacks SharedAccessKey"},
		{"key and signature", endpoint + policy + key + "SharedAccessSignature=x", "one of them is enough"},
		{"a part twice", endpoint + policy + key + "endpoint=sb://other", "endpoint twice"},
		{"a key that is no part", endpoint + policy + "HUSH", "no '='"},
		{"an endpoint without a host", "Endpoint=sb:///;" + policy + key, "write sb://host/"},
		{"an endpoint with a path", "Endpoint=sb://h/hub;" + policy + key, "write sb://host/"},
		{"an endpoint with a user", "Endpoint=sb://u@h/;" + policy + key, "write sb://host/"},
		{"an endpoint with a zone", "Endpoint=sb://[::1%25eth0];" + policy + key, "write sb://host/"},
		{"an endpoint with a port that is none", "Endpoint=sb://h:amqp;" + policy + key, "write sb://host/"},
		{"an emulator that is neither", endpoint + policy + key + "UseDevelopmentEmulator=yes", "write true or false"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			_, err := ParseConnectionString(tt.text)
			if !errors.Is(err, ErrConnectionString) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "HUSH") {
				t.Errorf("the key is in %q", err)
			}
		})
	}
}

func TestConnectionStringAsText(t *testing.T) {
	c := ConnectionString{Endpoint: "sb://localhost:5672/", Policy: RootPolicy, Key: "k=", Hub: "orders", Emulator: true}
	want := "Endpoint=sb://localhost:5672/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=k=;EntityPath=orders;UseDevelopmentEmulator=true"
	testkit.Equal(t, c.String(), want)
	testkit.Equal(t, c.Host(), "localhost:5672", "host")
	c = ConnectionString{Endpoint: "sb://ns/", Signature: goodToken}
	if got, want := c.String(), "Endpoint=sb://ns/;SharedAccessSignature="+goodToken; got != want {
		t.Errorf("got %s", got)
	}
}

// What was read is written so that it is read alike.
func FuzzConnectionString(f *testing.F) {
	f.Add("Endpoint=sb://localhost;SharedAccessKeyName=p;SharedAccessKey=k=;EntityPath=h;UseDevelopmentEmulator=true;")
	f.Add("Endpoint=sb://[::1%25eth0]:1;SharedAccessSignature=x")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConnectionString(text)
		if err != nil {
			testkit.ErrorIs(t, err, ErrConnectionString, "does not wrap ErrConnectionString")
			return
		}
		testkit.Equal(t, testkit.Value(ParseConnectionString(c.String()))(t), c)
	})
}

package auth

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestLocalNames(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LocalHost.:8080": true, "yard.localhost:8080": true,
		"127.0.0.1:8080": true, "127.0.0.1": true, "[::1]:8080": true, "[::1]": true, "::1": true, "192.168.1.5:8080": true,
		"": false, "evil.example": false, "evil.example:8080": false, "127.0.0.1.evil.example:8080": false,
		"notlocalhost": false, "localhost.evil.example": false, "localhost@evil.example": false,
	} {
		t.Run(host, func(t *testing.T) {
			testkit.Equal(t, IsLocalName(host, ""), want, "%q", host)
		})
	}
	for host, want := range map[string]bool{
		"yard.example": true, "Yard.Example.:8443": true, "evil.example": false, "x.yard.example": false, "": false,
	} {
		t.Run(host, func(t *testing.T) {
			testkit.Equal(t, IsLocalName(host, "yard.EXAMPLE"), want, "%q at a yard with a name", host)
		})
	}
}

package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Listener is a listener with the address that it is given, which may be Off.
type Listener struct {
	// Name is that of the setting and of the flag.
	Name    string
	Address string
	TLS     bool
}

// Listeners lists the listeners of a configuration, closed ones included.
func (c Config) Listeners() []Listener {
	return []Listener{
		{"amqp", c.AMQP, false}, {"amqps", c.AMQPS, true}, {"http", c.HTTP, false}, {"https", c.HTTPS, true},
		{"kafka", c.Kafka, false}, {"kafkas", c.Kafkas, true}, {DevStorage, c.DevStorage, false},
	}
}

// DevStorage is the listener in the place of the official storage emulator.
const DevStorage = "devStorage"

// URL is what clients call the listener. But for one the schemes are the names.
func (d Listener) URL() string {
	scheme := d.Name
	if scheme == DevStorage {
		scheme = "http"
	}
	return scheme + "://" + d.Address
}

// Open tells whether the listener is to be opened.
func (d Listener) Open() bool { return d.Address != Off }

// OnLoopback tells whether nobody but this machine can reach the listener. A name other than
// localhost may mean anything.
func (d Listener) OnLoopback() bool {
	host, _, err := net.SplitHostPort(d.Address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Check says what is wrong with the address, if anything: it has to be a host and a port.
func (d Listener) Check() error {
	_, port, err := net.SplitHostPort(d.Address)
	if err != nil {
		return fmt.Errorf("%q is no address: write it like 127.0.0.1:8080, or off", d.Address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is no port: it goes from 0 (any free one) to 65535", port)
	}
	return nil
}

// CheckPlaintext refuses a listener without TLS that others can reach, unless that is allowed.
func (d Listener) CheckPlaintext(allowed bool) error {
	if d.TLS || allowed || d.OnLoopback() {
		return nil
	}
	return fmt.Errorf("%q can be reached from other machines, and what goes through this listener is not encrypted: "+
		"use %ss, or set allowPlaintext if everybody in between is trusted", d.Address, d.Name)
}

// CheckDevelopment refuses what lets everybody in where others can reach the listener.
func (d Listener) CheckDevelopment() error {
	if d.OnLoopback() {
		return nil
	}
	return fmt.Errorf("it lets everybody in and is for development only, while the listener %s at %q can be reached from other machines", d.Name, d.Address)
}

// collides tells whether two listeners cannot both be open, as far as their addresses tell by themselves.
func (d Listener) collides(other Listener) bool {
	host, port, err := net.SplitHostPort(d.Address)
	otherHost, otherPort, otherErr := net.SplitHostPort(other.Address)
	if err != nil || otherErr != nil || port != otherPort || strings.TrimLeft(port, "0") == "" {
		return false // port 0 is another for each
	}
	if strings.EqualFold(host, otherHost) || host == "" || otherHost == "" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	otherIP, otherErr := netip.ParseAddr(otherHost)
	return err == nil && otherErr == nil && ip.Unmap().Is4() == otherIP.Unmap().Is4() && (ip == otherIP || ip.IsUnspecified() || otherIP.IsUnspecified())
}

// validateApart wants an address of its own for each listener.
func (c Config) validateApart(found *complaints) {
	var open []Listener
	for _, listener := range c.Listeners() {
		if !listener.Open() {
			continue
		}
		if i := slices.IndexFunc(open, listener.collides); i >= 0 {
			found.add(listener.Name, "%q is taken by the listener %s, at %q: use another port, or off", listener.Address, open[i].Name, open[i].Address)
		}
		open = append(open, listener)
	}
}

func (c Config) validateListeners(found *complaints) {
	c.validateApart(found)
	for _, listener := range c.Listeners() {
		if !listener.Open() {
			continue
		}
		if err := listener.Check(); err != nil {
			found.addError(listener.Name, err)
			continue
		}
		if listener.Name != DevStorage { // which has a stricter rule
			found.addError(listener.Name, listener.CheckPlaintext(c.AllowPlaintext))
		}
		if c.AcceptAnyJWT {
			found.addError("acceptAnyJwt", listener.CheckDevelopment())
		}
		if c.DevStorage != Off {
			found.addError(DevStorage, listener.CheckDevelopment())
		}
	}
	between(found, "amqpIdleTimeout", c.AMQPIdleTimeout, minIdleTimeout, time.Hour)
	atLeastOne(found, "amqpMaxConnections", c.AMQPMaxConnections)
	atLeastOne(found, "httpMaxConnections", c.HTTPMaxConnections)
	atLeastOne(found, "kafkaMaxConnections", c.KafkaMaxConnections)
	found.addError("kafkaAdvertise", checkAdvertised(c.KafkaAdvertise))
	found.addError("kafkasAdvertise", checkAdvertised(c.KafkasAdvertise))
	oneOf(found, "kafkaBrokers", c.KafkaBrokers, BrokersAll, BrokersOne)
}

func atLeastOne(found *complaints, key string, n int) {
	if n < 1 {
		found.add(key, "%d is not at least 1", n)
	}
}

// What Kafka clients hear of where several nodes share a yard: of each node, or of one broker that stands for all.
const (
	BrokersAll = "all"
	BrokersOne = "one"
)

// checkAdvertised says what is wrong with an address that clients are to be led to; empty: none is given.
func checkAdvertised(address string) error {
	if address == "" {
		return nil
	}
	_, _, err := SplitAdvertised(address)
	return err
}

// SplitAdvertised gives host and port of an address that clients are to be led to.
func SplitAdvertised(address string) (host string, port int32, err error) {
	host, text, err := net.SplitHostPort(address)
	number, portErr := strconv.ParseUint(text, 10, 16)
	if ip, ipErr := netip.ParseAddr(host); err != nil || portErr != nil || number == 0 || host == "" || ipErr == nil && ip.IsUnspecified() {
		return "", 0, fmt.Errorf("%q is no address that a client could connect to: write it like yard.example.com:9093", address)
	}
	return host, int32(number), nil
}

// minIdleTimeout is what the .NET client insists on: it refuses servers that ask for less.
const minIdleTimeout = 5 * time.Second

// validateTrust looks at certificates and at issuers of tokens.
func (c Config) validateTrust(found *complaints) {
	switch {
	case c.TLS.CertFile != "" && c.TLS.KeyFile == "":
		found.add("tls.certFile", "it needs its private key, tls.keyFile (--tls-key-file)")
	case c.TLS.CertFile == "" && c.TLS.KeyFile != "":
		found.add("tls.keyFile", "it needs its certificate, tls.certFile (--tls-cert-file)")
	}
	if c.OIDC.Issuer != "" {
		switch u, err := url.Parse(c.OIDC.Issuer); {
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			found.add("oidc.issuer", "%q is no URL: write it like https://login.example.com", c.OIDC.Issuer)
		case u.Scheme == "http" && !(Listener{Address: net.JoinHostPort(u.Hostname(), "0")}).OnLoopback():
			found.add("oidc.issuer", "its keys would be fetched without TLS, so that anybody in between could let himself in: use https")
		}
	}
	switch {
	case c.OIDC.Issuer != "" && c.OIDC.Audience == "":
		found.add("oidc.issuer", "it needs oidc.audience, else tokens made for others would be taken")
	case c.OIDC.Issuer == "" && c.OIDC.Audience != "":
		found.add("oidc.audience", "it needs oidc.issuer")
	case c.OIDC.Issuer == "" && c.OIDC.ClientID != "":
		found.add("oidc.clientId", "it needs oidc.issuer")
	case c.OIDC.ClientID == "" && c.OIDC.Scope != "":
		found.add("oidc.scope", "it needs oidc.clientId")
	case c.OIDC.Issuer != "" && c.AcceptAnyJWT:
		found.add("acceptAnyJwt", "it would take every token, also those that are not from oidc.issuer: choose one")
	}
}

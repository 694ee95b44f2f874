package server

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/api/azureblob"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// standardPorts need not be named in an endpoint: clients take them by themselves.
var standardPorts = map[string]string{"amqp": "5672", "amqps": "5671", "http": "80", "https": "443"}

// connectTo gives the part of a connection string that says where the yard is: the best
// listener among those that clients elsewhere can reach or, where there is none, here.
func (o openListeners) connectTo(host string) auth.ConnectionString {
	best := []string{"amqp", "amqps", "https", "http"} // plain is the simplest here, and the worst elsewhere
	reachable := slices.DeleteFunc(slices.Clone(o), func(d openListener) bool { return !slices.Contains(best, d.Name) })
	if !o.onLoopback() {
		reachable = slices.DeleteFunc(reachable, func(d openListener) bool { return d.OnLoopback() })
		best = []string{"amqps", "amqp", "https", "http"}
	}
	if len(reachable) == 0 {
		return auth.ConnectionString{Endpoint: "sb://localhost/"}
	}
	listener := slices.MinFunc(reachable, func(a, b openListener) int {
		return cmp.Compare(slices.Index(best, a.Name), slices.Index(best, b.Name))
	})
	return listener.connectTo(host)
}

// connectTo points at this listener.
func (d openListener) connectTo(host string) auth.ConnectionString {
	name, port, err := net.SplitHostPort(d.Address)
	if err != nil {
		return auth.ConnectionString{Endpoint: "sb://" + d.Address + "/"} // a listener that is not of TCP
	}
	if !d.OnLoopback() {
		name = hostName(host, name)
	}
	endpoint := net.JoinHostPort(name, port)
	if port == standardPorts[d.Name] {
		endpoint = endpoint[:len(endpoint)-len(port)-1]
	}
	// The flag for the official emulator is how clients are told to do without TLS.
	return auth.ConnectionString{Endpoint: "sb://" + endpoint + "/", Emulator: !d.TLS}
}

// hostName is what others call this machine: as they were told to, or by the address
// that the listener is bound to, unless it is bound to all of them.
func hostName(configured, bound string) string {
	if configured != "" {
		return configured
	}
	if ip, err := netip.ParseAddr(bound); err == nil && !ip.IsUnspecified() {
		return bound
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "localhost"
}

// endpointFor gives the HTTP listener what it writes into connection strings. Where a listener
// is bound to all addresses, a client is given the name by which it reached the yard.
func (o openListeners) endpointFor(host string) func(*http.Request, bool) string {
	return func(r *http.Request, tls bool) string {
		for _, d := range o {
			if d.TLS == tls && strings.HasPrefix(d.Name, "amqp") {
				return d.connectTo(cmp.Or(host, d.reachedBy(r))).Endpoint
			}
		}
		return ""
	}
}

// reachedBy is the name in a request's URL, if the listener is where that name leads.
func (d openListener) reachedBy(r *http.Request) string {
	host, _, err := net.SplitHostPort(d.Address)
	if ip, parseErr := netip.ParseAddr(host); err != nil || parseErr != nil || !ip.IsUnspecified() {
		return ""
	}
	return (&url.URL{Host: r.Host}).Hostname()
}

// blobEndpointFor gives the HTTP listener what it writes into connection strings for storage
// clients: the account's URL, by the same rules as endpointFor.
func (o openListeners) blobEndpointFor(host string) func(*http.Request, bool) string {
	return func(r *http.Request, tls bool) string {
		for _, d := range o {
			if d.TLS == tls && strings.HasPrefix(d.Name, "http") {
				at := d.connectTo(cmp.Or(host, d.reachedBy(r))).Endpoint
				return d.Name + strings.TrimPrefix(at, "sb") + strings.TrimPrefix(azureblob.Prefix, "/") + azureblob.Account
			}
		}
		return ""
	}
}

// linkBase is the URL of the HTTP listener for whoever is sent a link: the public one, else that of
// the plain listener, else that of the other; empty where there is none.
func (o openListeners) linkBase(cfg Config) string {
	return cmp.Or(strings.TrimSuffix(cfg.PublicURL, "/"), o.httpBase(cfg, nil, false), o.httpBase(cfg, nil, true))
}

// httpBase is the URL of the HTTP listener with TLS or without, as a client reaches it who sent a
// request, or anybody if there is none; empty where there is no such listener.
func (o openListeners) httpBase(cfg Config, r *http.Request, tls bool) string {
	for _, d := range o {
		if d.TLS != tls || !strings.HasPrefix(d.Name, "http") {
			continue
		}
		host := cfg.Host
		if r != nil {
			host = cmp.Or(host, d.reachedBy(r))
		}
		return d.Name + strings.TrimSuffix(strings.TrimPrefix(d.connectTo(host).Endpoint, "sb"), "/")
	}
	return ""
}

// publishURL is where a topic is published to. The public URL is one of them.
func (o openListeners) publishURL(cfg Config, r *http.Request, topic string, tls bool) string {
	base := o.httpBase(cfg, r, tls)
	if cfg.PublicURL != "" {
		base = ""
		if strings.HasPrefix(cfg.PublicURL, "https:") == tls {
			base = strings.TrimSuffix(cfg.PublicURL, "/")
		}
	}
	if base == "" {
		return ""
	}
	return base + "/topics/" + topic + "/api/events"
}

// resumeBase is the URL of the links in notices. Whoever has such a link can resume, so it names
// the TLS listener where others can reach that.
func (o openListeners) resumeBase(cfg Config) string {
	reachable := slices.DeleteFunc(slices.Clone(o), func(d openListener) bool { return d.OnLoopback() })
	return cmp.Or(strings.TrimSuffix(cfg.PublicURL, "/"), reachable.httpBase(cfg, nil, true), reachable.httpBase(cfg, nil, false), o.linkBase(cfg))
}

// tlsAddresses are the addresses by which clients find the TLS listeners, besides the host: those
// they are bound to, those in the configuration, where Kafka clients are led, and the blob account's name.
func (o openListeners) tlsAddresses(cfg Config) []string {
	var addresses []string
	for _, d := range o {
		if d.TLS {
			addresses = append(addresses, d.Address)
		}
	}
	if len(addresses) == 0 {
		return nil
	}
	if _, err := netip.ParseAddr(cfg.Host); err != nil && cfg.Host != "" && !strings.HasPrefix(cfg.Host, "*") {
		addresses = append(addresses, azureblob.HostPrefix+"."+cfg.Host)
	}
	for _, d := range cfg.listeners() {
		if d.TLS && d.Open() {
			addresses = append(addresses, d.Address)
		}
	}
	if cfg.KafkasAdvertise != "" {
		addresses = append(addresses, cfg.KafkasAdvertise)
	}
	return addresses
}

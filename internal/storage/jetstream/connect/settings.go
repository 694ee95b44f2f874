// Package connect reads where the NATS servers of a yard are and how they let in (settings.go, pure),
// connects to them (dial.go), and finds out whether they keep what a yard promises (check.go;
// judge.go, pure).
package connect

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Settings say where the servers are, whose data is on them, and how they let in.
type Settings struct {
	// Servers are HOST:PORT. More are learnt from them.
	Servers []string
	// TLS: plain connections are refused.
	TLS bool
	// Yard is the name of the data among that of others on the same servers.
	Yard string
	// Replicas is how many servers keep each event: 1, 3 or 5.
	Replicas int
	// HubStreams is how many streams a new hub is spread over, 1 to 16; zero: one for each 16 partitions.
	HubStreams int
	// StreamBytes is how much a stream may hold; zero: what the servers have room for.
	StreamBytes int64

	// At most one of these lets in: a name with a password, a token, a file with a JWT and its key, a
	// file with the seed of an nkey.
	User, Password      string
	Token               string
	CredsFile, NKeyFile string
	// CAFile has the authorities of the servers' certificates, empty: the system's. CertFile and
	// KeyFile are this node's certificate, where the servers ask for one. All are PEM.
	CAFile, CertFile, KeyFile string
	// Monitors are the URLs of the servers' monitoring, by which it is found out how they are set.
	Monitors []string
	// SystemUser with SystemPassword, or SystemCredsFile, lets in to the system account, by which the same is
	// found out of all servers. Nothing else is done there.
	SystemUser, SystemPassword, SystemCredsFile string
}

// asksSystem: the servers can be asked through the system account.
func (s Settings) asksSystem() bool { return s.SystemUser+s.SystemCredsFile != "" }

// Defaults of a URL that does not say otherwise.
const (
	DefaultYard     = "eventyard"
	DefaultReplicas = 3
	defaultPort     = "4222"
	// MaxHubStreams and MinStreamBytes bound what can be set.
	MaxHubStreams  = 16
	MinStreamBytes = 1 << 30
)

var yardName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// IsURL tells whether a URL of storage is for this package to read.
func IsURL(text string) bool {
	return strings.HasPrefix(text, "nats://") || strings.HasPrefix(text, "tls://")
}

// usage is how a URL is written.
const usage = "nats://HOST:PORT,HOST:PORT?yard=NAME&replicas=3, or tls://… to refuse plain connections"

// Parse reads a URL:
//
//	nats://[USER:PASSWORD@|TOKEN@]HOST[:PORT][,HOST[:PORT]…][?yard=NAME&replicas=N&streams=N&streambytes=N
//	       &creds=FILE&nkey=FILE&ca=FILE&cert=FILE&key=FILE&monitor=URL…
//	       &system=USER:PASSWORD&systemcreds=FILE]
//
// Its errors are sentences for the operator, and hold no password or token.
func Parse(text string) (Settings, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	if !IsURL(text) {
		return Settings{}, fmt.Errorf("storage on NATS servers is written %s", usage)
	}
	s := Settings{TLS: scheme == "tls", Yard: DefaultYard, Replicas: DefaultReplicas}
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := s.readUser(rest[:at]); err != nil {
			return Settings{}, err
		}
		rest = rest[at+1:]
	}
	rest = strings.TrimSuffix(rest, "/")
	for server := range strings.SplitSeq(rest, ",") {
		address, err := parseServer(server)
		if err != nil && strings.Contains(query, "@") { // it may be the half of a password
			err = errSpecial
		}
		if err != nil {
			return Settings{}, err
		}
		if !slices.Contains(s.Servers, address) {
			s.Servers = append(s.Servers, address)
		}
	}
	if err := s.readQuery(query); err != nil {
		return Settings{}, err
	}
	return s, s.Check()
}

// errSpecial: something cannot be read that may be a password, and so is not shown.
var errSpecial = errors.New("what stands before the '@' is USER:PASSWORD or TOKEN, with special characters as %XX")

// readUser reads what stands before the '@'.
func (s *Settings) readUser(text string) error {
	user, password, both := strings.Cut(text, ":")
	user, err := url.PathUnescape(user)
	password, err2 := url.PathUnescape(password)
	if err != nil || err2 != nil || user == "" || both && password == "" {
		return errSpecial
	}
	if both {
		s.User, s.Password = user, password
	} else {
		s.Token = user
	}
	return nil
}

// parseServer gives HOST:PORT.
func parseServer(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), defaultPort
		if strings.ContainsAny(host, ":") && !isAddress(host) {
			return "", fmt.Errorf("server %q: use HOST or HOST:PORT, with several divided by commas", text)
		}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if host == "" || strings.ContainsAny(host, " /\\?#@[]%\t\r\n") || err != nil || number == 0 {
		return "", fmt.Errorf("server %q: use HOST or HOST:PORT, with several divided by commas", text)
	}
	return net.JoinHostPort(host, strconv.FormatUint(number, 10)), nil
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// readQuery reads what stands behind the '?'.
func (s *Settings) readQuery(text string) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("what stands behind the '?' is NAME=VALUE, divided by '&', with special characters as %XX")
	}
	fields := map[string]*string{
		"yard": &s.Yard, "creds": &s.CredsFile, "nkey": &s.NKeyFile, "ca": &s.CAFile, "cert": &s.CertFile, "key": &s.KeyFile,
		"systemcreds": &s.SystemCredsFile,
	}
	wanted := map[string]string{"replicas": "use 1, 3 or 5", "streams": "use 1 to 16", "streambytes": "use a number of bytes"}
	numbers := map[string]func(int64){
		"replicas": func(n int64) { s.Replicas = int(min(n, math.MaxInt32)) }, "streams": func(n int64) { s.HubStreams = int(min(n, math.MaxInt32)) },
		"streambytes": func(n int64) { s.StreamBytes = n },
	}
	for name, given := range values {
		field := fields[name]
		switch {
		case name == "monitor":
			s.Monitors = given
			continue
		case name == "system":
			user, password, both := strings.Cut(given[0], ":")
			if len(given) > 1 || !both || user == "" || password == "" {
				return errors.New("system= is USER:PASSWORD of the system account, with special characters as %XX")
			}
			s.SystemUser, s.SystemPassword = user, password
			continue
		case numbers[name] == nil && field == nil && strings.Contains(name, "@"):
			return errSpecial
		case numbers[name] == nil && field == nil:
			return fmt.Errorf("there is no setting %q of NATS servers: use yard, replicas, streams, streambytes, creds, nkey, ca, cert, key, monitor, system or systemcreds", name)
		case len(given) > 1 || given[0] == "":
			return fmt.Errorf("the setting %q of NATS servers is given once, with a value", name)
		case field != nil:
			*field = given[0]
			continue
		}
		number, err := strconv.ParseInt(given[0], 10, 64)
		if err != nil {
			return fmt.Errorf("%s=%.20q: %s", name, given[0], wanted[name])
		}
		numbers[name](number)
	}
	return nil
}

// Check says what is wrong with the settings by themselves.
func (s Settings) Check() error {
	ways := 0
	for _, way := range []string{s.User, s.Token, s.CredsFile, s.NKeyFile} {
		if way != "" {
			ways++
		}
	}
	switch {
	case len(s.Servers) == 0:
		return fmt.Errorf("no NATS server is named: use %s", usage)
	case !yardName.MatchString(s.Yard):
		return fmt.Errorf("yard %.40q: use 1 to 32 letters, digits, '-' and '_'", s.Yard)
	case s.Replicas != 1 && s.Replicas != 3 && s.Replicas != 5:
		return fmt.Errorf("%d replicas: use 1, 3 or 5", s.Replicas)
	case s.HubStreams < 0 || s.HubStreams > MaxHubStreams:
		return fmt.Errorf("%d streams of a hub: use 1 to %d, or 0 for one for each 16 partitions", s.HubStreams, MaxHubStreams)
	case s.StreamBytes < 0 || s.StreamBytes > 0 && s.StreamBytes < MinStreamBytes:
		return fmt.Errorf("streams of %d bytes: use %d or more, or 0 for what the servers have room for", s.StreamBytes, MinStreamBytes)
	case ways > 1:
		return errors.New("one way lets in to the NATS servers: give USER:PASSWORD@, TOKEN@, creds= or nkey=")
	case s.SystemUser != "" && s.SystemCredsFile != "":
		return errors.New("one way lets in to the system account: give system= or systemcreds=")
	case (s.CertFile == "") != (s.KeyFile == ""):
		return errors.New("a certificate and its key are given together: cert= and key=")
	}
	for _, monitor := range s.Monitors {
		if u, err := url.Parse(monitor); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("monitor=%.80q: use the URL of a server's monitoring, such as http://HOST:8222", behindLast(monitor, "@"))
		}
	}
	return nil
}

// String names servers and yard, and no secret.
func (s Settings) String() string {
	scheme := "nats://"
	if s.TLS {
		scheme = "tls://"
	}
	return scheme + strings.Join(s.Servers, ",") + "?yard=" + s.Yard
}

// Address gives HOST:PORT of a server as a connection names it, without what lets in.
func Address(server string) string { return behindLast(behindLast(server, "://"), "@") }

// Local tells whether all servers, with those that they know of, are on this machine's loopback.
func (s Settings) Local(discovered []string) bool {
	for _, server := range slices.Concat(s.Servers, discovered) {
		server = Address(server) // one that was learnt of may come with what lets in
		host, _, err := net.SplitHostPort(server)
		if err != nil {
			host = server
		}
		ip, err := netip.ParseAddr(host)
		if !strings.EqualFold(host, "localhost") && (err != nil || !ip.Unmap().IsLoopback()) {
			return false
		}
	}
	return true
}

// behindLast is what stands behind the last separator; all where there is none.
func behindLast(text, separator string) string {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[i+len(separator):]
	}
	return text
}

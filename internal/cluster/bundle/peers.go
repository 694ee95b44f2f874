package bundle

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DefaultPort is where a peer's server listens to the others, unless it is told otherwise.
const DefaultPort = "6222"

// Peer is one of the nodes with a server inside.
type Peer struct {
	Name string `json:"name"`
	// Address is HOST:PORT, at which the other peers' servers reach this one's.
	Address string `json:"address"`
}

// Host is where it is, without the port.
func (p Peer) Host() string {
	host, _, err := net.SplitHostPort(p.Address)
	if err != nil {
		return p.Address
	}
	return host
}

// nodesPortBelow is how far the port for nodes without a server is below that for peers: 4222 and 6222.
const nodesPortBelow = 2000

// NodesAddress is HOST:PORT, at which nodes without a server are let in; empty where the port for peers leaves
// none.
func (p Peer) NodesAddress() string {
	host, text, err := net.SplitHostPort(p.Address)
	port, err2 := strconv.Atoi(text)
	if err != nil || err2 != nil || port <= nodesPortBelow {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(port-nodesPortBelow))
}

// Local tells whether the address is on loopback, where other machines cannot reach it.
func (p Peer) Local() bool {
	ip, err := netip.ParseAddr(p.Host())
	return strings.EqualFold(p.Host(), "localhost") || err == nil && ip.Unmap().IsLoopback()
}

func (p Peer) String() string { return p.Name + "=" + p.Address }

const peersUsage = "give three or five peers as HOST, HOST:PORT or NAME=HOST:PORT, divided by commas"

// ParsePeers reads [NAME=]HOST[:PORT], divided by commas. A peer without a name has that of its host,
// or node-1, node-2 and so on where the host is an address or localhost.
func ParsePeers(text string) ([]Peer, error) {
	var peers []Peer
	for i, one := range strings.Split(text, ",") {
		name, address, named := strings.Cut(strings.TrimSpace(one), "=")
		if !named {
			name, address = "", name
		}
		address, err := parseAddress(address)
		if err != nil {
			return nil, fmt.Errorf("peer %.80q: %w", one, err)
		}
		p := Peer{Name: name, Address: address}
		if !named {
			p.Name = p.Host()
			if _, err := netip.ParseAddr(p.Host()); err == nil || p.Local() {
				p.Name = "node-" + strconv.Itoa(i+1)
			}
		}
		peers = append(peers, p)
	}
	return peers, checkPeers(peers)
}

// parseAddress gives HOST:PORT.
func parseAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), DefaultPort
	}
	_, notIP := netip.ParseAddr(host)
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || notIP != nil && !hostName.MatchString(host) {
		return "", errors.New(peersUsage)
	}
	return net.JoinHostPort(host, strconv.FormatUint(number, 10)), nil
}

var (
	hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
	peerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// checkPeers says what is wrong with peers.
func checkPeers(peers []Peer) error {
	switch n := len(peers); {
	case n == 2:
		return errors.New("with two peers nothing can be stored while one of them is away, so that two are less than one: " + peersUsage)
	case n != 3 && n != 5:
		return fmt.Errorf("%d peers: %s", n, peersUsage)
	}
	local := 0
	for i, p := range peers {
		if !peerName.MatchString(p.Name) {
			return fmt.Errorf("peer name %.80q: use 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit", p.Name)
		}
		if _, err := parseAddress(p.Address); err != nil {
			return fmt.Errorf("peer %s at %.80q: %w", p.Name, p.Address, err)
		}
		for _, other := range peers[:i] {
			switch {
			case strings.EqualFold(other.Name, p.Name):
				return fmt.Errorf("two peers are called %s: give each a name of its own, as NAME=HOST:PORT", p.Name)
			case other.Address == p.Address:
				return fmt.Errorf("two peers are at %s: on one machine give each a port of its own, as %s:6222,%s:6223,%s:6224", p.Address, p.Host(), p.Host(), p.Host())
			}
		}
		if p.Local() {
			local++
		}
	}
	if local > 0 && local < len(peers) {
		return errors.New("some peers are on loopback, where those on other machines cannot reach them: give the addresses that all peers can reach")
	}
	return nil
}

// checkNodes says what is wrong with nodes without a server.
func checkNodes(peers []Peer, nodes []string) error {
	for i, name := range nodes {
		switch {
		case !peerName.MatchString(name):
			return fmt.Errorf("node name %.80q: use 1 to 64 letters, digits, '.', '_' and '-', beginning with a letter or digit", name)
		case slices.ContainsFunc(nodes[:i], func(other string) bool { return strings.EqualFold(other, name) }),
			slices.ContainsFunc(peers, func(p Peer) bool { return strings.EqualFold(p.Name, name) }):
			return fmt.Errorf("two nodes are called %s: give each a name of its own", name)
		}
	}
	for _, p := range peers {
		if len(nodes) > 0 && p.NodesAddress() == "" {
			return fmt.Errorf("peer %s: nodes are let in at a port %d below that for peers: use one above %d", p, nodesPortBelow, nodesPortBelow)
		}
	}
	return nil
}

// names are those of the peers, sorted.
func names(peers []Peer) []string {
	all := make([]string, len(peers))
	for i, p := range peers {
		all[i] = p.Name
	}
	slices.Sort(all)
	return all
}

// Same tells whether peers are those of the bundle, in any order.
func (b Bundle) Same(peers []Peer) bool {
	return len(peers) == len(b.Peers) && !slices.ContainsFunc(peers, func(p Peer) bool { return !slices.Contains(b.Peers, p) })
}

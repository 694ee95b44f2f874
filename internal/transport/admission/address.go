package admission

import (
	"context"
	"net/netip"
)

// Address is who shares what an address may have: a machine's own address, or with IPv6 the network
// of which a machine may use any address. It reads host:port; not ok: that is no address of IP.
func Address(remote string) (prefix netip.Prefix, ok bool) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}, false
	}
	address, bits := at.Addr().Unmap().WithZone(""), 32
	if address.Is6() {
		bits = 64
	}
	prefix, err = address.Prefix(bits)
	return prefix, err == nil
}

type remoteKey struct{}

// WithRemote gives a context of what comes from an address, as host:port.
func WithRemote(ctx context.Context, remote string) context.Context {
	return context.WithValue(ctx, remoteKey{}, remote)
}

// Remote gives the address that something comes from; empty where nobody has said it.
func Remote(ctx context.Context) string {
	remote, _ := ctx.Value(remoteKey{}).(string)
	return remote
}

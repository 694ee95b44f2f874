package kafka

import "fmt"

// header is the head of a request.
type header struct {
	key, version int16
	correlation  int32
	clientID     string
	// flexible: the version has compact lengths and tagged fields, in the request and in the response.
	flexible bool
}

// readHeader reads the head of a request: version 1, or in flexible versions 2, which has tagged fields.
// The name of the client is as before in nearly all requests of a connection, and then costs nothing.
func readHeader(b *cut, before string) (header, Offer, error) {
	h := header{key: b.int16(), version: b.int16(), correlation: b.int32()}
	if b.err != nil {
		return h, Offer{}, b.err
	}
	offer, ok := offerOf(h.key)
	if !ok {
		return h, offer, fmt.Errorf("%w: key %d", errKey, h.key)
	}
	h.clientID = b.name(before)
	if h.flexible = h.version >= offer.Flexible; h.flexible {
		b.tags()
	}
	return h, offer, b.err
}

// name is text that is probably as before.
func (b *cut) name(before string) string {
	n := int(b.int16())
	if b.err != nil || n < 0 {
		return ""
	}
	if n > smallReadBytes {
		b.fail(errMalformed)
		return ""
	}
	if p := b.next(n); string(p) != before {
		return string(p)
	}
	return before
}

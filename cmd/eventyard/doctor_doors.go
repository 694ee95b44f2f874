package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/server"
)

// examineDoors sees whether each door could be opened, and who has its address if not.
func (d *doctor) examineDoors(ctx context.Context) {
	for _, door := range d.cfg.Doors() {
		d.examineDoor(ctx, door)
	}
}

func (d *doctor) examineDoor(ctx context.Context, door config.Door) {
	if !door.Open() {
		d.note(door.Name, skipped, "", "the door is off")
		return
	}
	flag := "--" + door.Name
	err := server.CheckAddress(door.Address)
	switch {
	case err == nil:
		d.note(door.Name, fine, "", "%s is free", door.Address)
	case errors.Is(err, syscall.EADDRINUSE):
		d.judgeTenant(ctx, door)
	case errors.Is(err, syscall.EACCES):
		d.note(door.Name, problem, "choose a port above 1023 with "+flag, "%v", err)
	default:
		d.note(door.Name, problem, "choose another address with "+flag, "%v", err)
	}
}

// tenantPatience is how long whoever has the address may take to say who it is.
const tenantPatience = 2 * time.Second

// judgeTenant tells the yard of this folder from another's, which would keep this one
// from starting: a yard that runs holds the lock of its folder.
func (d *doctor) judgeTenant(ctx context.Context, door config.Door) {
	next := fmt.Sprintf("stop it, choose another address with --%s, or close the door with --%s off", door.Name, door.Name)
	tenant := askTenant(ctx, door)
	running, err := server.Running(d.cfg.Data)
	switch {
	case tenant == "":
		d.note(door.Name, problem, next, "another program listens at %s", door.Address)
	case err == nil && !running:
		d.note(door.Name, problem, next, "%s is in use by another yard, of another data folder", door.Address)
	default:
		d.note(door.Name, fine, "", "%s is running at %s", tenant, door.Address)
	}
}

// askTenant says who has the address of a door, or nothing where it is no yard.
func askTenant(ctx context.Context, door config.Door) string {
	ctx, cancel := context.WithTimeout(ctx, tenantPatience)
	defer cancel()
	if strings.HasPrefix(door.Name, "amqp") {
		return askAMQP(ctx, door)
	}
	return askHTTP(ctx, door)
}

// askAMQP begins as clients do and sees whether it is answered in AMQP. Which broker it
// is would take a key to find out; that it holds our folder, or not, is told by the lock.
func askAMQP(ctx context.Context, door config.Door) string {
	const header = "AMQP\x03\x01\x00\x00"
	conn, err := dialDoor(ctx, door)
	if err != nil {
		return ""
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	answer := make([]byte, len(header))
	if _, err := io.WriteString(conn, header); err != nil {
		return ""
	}
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != header {
		return ""
	}
	return "an AMQP 1.0 broker"
}

// unverified does not ask for whose certificate it is: nothing is told but a greeting.
var unverified = &tls.Config{InsecureSkipVerify: true}

func dialDoor(ctx context.Context, door config.Door) (net.Conn, error) {
	if !door.TLS {
		return new(net.Dialer).DialContext(ctx, "tcp", door.Address)
	}
	return (&tls.Dialer{Config: unverified}).DialContext(ctx, "tcp", door.Address)
}

// askHTTP asks without a key, which a yard refuses in words of its own.
func askHTTP(ctx context.Context, door config.Door) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, door.Name+"://"+door.Address+"/api/v1", nil)
	if err != nil {
		return ""
	}
	transport := &http.Transport{TLSClientConfig: unverified}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil || !bytes.Contains(body, []byte("urn:eventyard:")) {
		return ""
	}
	return "a yard"
}

// soon is how long before its end a certificate is worth a word.
const soon = 14 * 24 * time.Hour

// examineCertificates sees whether the doors with TLS have something to show. The yard
// renews its own; those of the operator are his to renew.
func (d *doctor) examineCertificates() {
	if d.cfg.AMQPS == config.Off && d.cfg.HTTPS == config.Off {
		return
	}
	own := d.cfg.TLS.CertFile == ""
	info, err := describeCertificates(d.cfg)
	if err == nil && !own {
		_, err = tls.LoadX509KeyPair(d.cfg.TLS.CertFile, d.cfg.TLS.KeyFile)
	}
	text := fmt.Sprintf("the certificate for %s is good until %s", oneLine(strings.Join(info.Names, ", ")), showTime(info.NotAfter))
	switch left := time.Until(info.NotAfter); {
	case own && errors.As(err, new(*advisedError)):
		d.note("tls", fine, "", "there is no certificate yet; serve will make one")
	case err != nil:
		d.note("tls", problem, "see whether the files of certificate and key are whole and belong together", "%v", err)
	case !own && left <= 0:
		d.note("tls", problem, "get a new one: clients refuse this", "%s", strings.Replace(text, " is good ", " was good ", 1))
	case !own && left < soon:
		d.note("tls", warning, "get a new one in time; it is read when its file changes", "%s", text)
	default:
		d.note("tls", fine, "", "%s", text)
	}
}

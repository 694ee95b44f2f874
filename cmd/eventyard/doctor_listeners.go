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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/server"
)

// examineListener sees whether a listener could be opened, and who has its address if not.
func (d *doctor) examineListener(ctx context.Context, listener config.Listener) {
	if !listener.Open() {
		d.note(listener.Name, skipped, "", "the listener is off")
		return
	}
	flag := listenerFlag(listener.Name)
	err := server.CheckAddress(listener.Address)
	switch {
	case err == nil:
		d.note(listener.Name, fine, "", "%s is free", listener.Address)
	case errors.Is(err, syscall.EADDRINUSE):
		d.judgeTenant(ctx, listener)
	case errors.Is(err, syscall.EACCES):
		d.note(listener.Name, problem, "choose a port above 1023 with "+flag, "%v", err)
	default:
		d.note(listener.Name, problem, "choose another address with "+flag, "%v", err)
	}
}

// examineBrokers says where Kafka clients are led of a node that shares a yard with others: they have to reach each by an
// address of its own, or all by a balancer's.
func (d *doctor) examineBrokers() {
	advertised := map[string]string{"kafka": d.cfg.KafkaAdvertise, "kafkas": d.cfg.KafkasAdvertise}
	for _, listener := range d.cfg.Listeners() {
		set, kafka := advertised[listener.Name]
		if !kafka || !listener.Open() || listener.OnLoopback() {
			continue
		}
		flag := "--" + listener.Name + "-advertise"
		switch {
		case d.cfg.KafkaBrokers == config.BrokersOne:
			d.note("brokers", fine, "", "clients of %s hear of one broker, which stands for all nodes", listener.Name)
		case set != "":
			d.note("brokers", fine, "", "clients of %s are led to %s for this node", listener.Name, set)
		case d.cfg.Host != "":
			d.note("brokers", warning, "give each node an address of its own with "+flag+"; where the host is a balancer, --kafka-brokers one says so",
				"clients of %s are led to %s for this node, and for each other that has the same host", listener.Name, d.cfg.Host)
		default:
			d.note("brokers", fine, "if clients cannot reach that, give another with "+flag,
				"clients of %s are led to the address of the listener for this node or, where it is for all addresses, to the machine's name", listener.Name)
		}
	}
}

// findYard has doctor look at the folder of the yard that runs here, where nobody has named one: who asks without a
// folder means that yard, wherever it was started. A yard in development says which it is; another asks for a key.
func (d *doctor) findYard(ctx context.Context) {
	if running, err := server.Running(d.cfg.Data); d.named || running || err != nil || d.cfg.HTTP == config.Off {
		return
	}
	client, err := admin.New(admin.Config{Server: "http://" + d.cfg.HTTP})
	if err != nil {
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, tenantPatience)
	defer cancel()
	kept, err := client.Storage(ctx)
	if err != nil || len(kept.Nodes) != 1 || kept.Nodes[0].Folder == "" || canWrite(kept.Nodes[0].Folder) != nil {
		return
	}
	// Whoever has the address says so: it is believed where a yard runs on that folder.
	if running, err := server.Running(kept.Nodes[0].Folder); err == nil && running {
		d.cfg.Data = kept.Nodes[0].Folder
	}
}

// tenantPatience is how long whoever has the address may take to say who it is.
const tenantPatience = 2 * time.Second

// judgeTenant tells the yard of this folder from another's, which would keep this one
// from starting: a yard that runs holds the lock of its folder.
func (d *doctor) judgeTenant(ctx context.Context, listener config.Listener) {
	flag := listenerFlag(listener.Name)
	next := fmt.Sprintf("stop it, choose another address with %s, or close the listener with %s off", flag, flag)
	ctx, cancel := context.WithTimeout(ctx, tenantPatience)
	defer cancel()
	ask := askHTTP
	switch {
	case strings.HasPrefix(listener.Name, "amqp"):
		ask = askAMQP
	case strings.HasPrefix(listener.Name, "kafka"):
		ask = askKafka
	}
	tenant := ask(ctx, listener)
	running, err := server.Running(d.cfg.Data)
	switch {
	case tenant == "":
		d.note(listener.Name, problem, next, "another program listens at %s", listener.Address)
	case err == nil && !running && !d.named:
		d.note(listener.Name, fine, "name its data folder with --data, or its settings with --config, to look at its data", "%s is running at %s", tenant, listener.Address)
	case err == nil && !running:
		d.note(listener.Name, problem, "if that is the yard that is meant, name its data folder with --data; else "+next,
			"%s is in use by another yard, of another data folder", listener.Address)
	default:
		d.note(listener.Name, fine, "", "%s is running at %s", tenant, listener.Address)
	}
}

// askAMQP, askKafka and askHTTP say who has the address of a listener, or nothing where it is no yard.
//
// askAMQP begins as clients do and sees whether it is answered in AMQP. Which broker it
// is would take a key to find out; that it holds our folder, or not, is told by the lock.
func askAMQP(ctx context.Context, listener config.Listener) string {
	const header = "AMQP\x03\x01\x00\x00"
	if string(exchange(ctx, listener, header, len(header))) != header {
		return ""
	}
	return "an AMQP 1.0 broker"
}

// askKafka asks for the versions of requests, as clients do first, without saying who it is; the number of the
// request is in the answer. For who it is the same holds as for AMQP.
func askKafka(ctx context.Context, listener config.Listener) string {
	const number = "yard"
	request := "\x00\x00\x00\x0a" + "\x00\x12\x00\x00" + number + "\xff\xff" // its length, ApiVersions 0, no client id
	if answer := exchange(ctx, listener, request, 8); len(answer) < 8 || string(answer[4:]) != number {
		return ""
	}
	return "a Kafka broker"
}

// exchange gives the beginning of the answer to who says something; nothing where there is none.
func exchange(ctx context.Context, listener config.Listener, say string, length int) []byte {
	dial := new(net.Dialer).DialContext
	if listener.TLS {
		dial = (&tls.Dialer{Config: unverified}).DialContext
	}
	conn, err := dial(ctx, "tcp", listener.Address)
	if err != nil {
		return nil
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := io.WriteString(conn, say); err != nil {
		return nil
	}
	answer := make([]byte, length)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil
	}
	return answer
}

// unverified does not ask for whose certificate it is: nothing is told but a greeting.
var unverified = &tls.Config{InsecureSkipVerify: true}

// askHTTP asks without a key, which a yard refuses in words of its own.
func askHTTP(ctx context.Context, listener config.Listener) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, listener.URL()+"/api/v1", nil)
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
	blobs := strings.HasPrefix(response.Header.Get("Server"), "Eventyard") // which tell of errors as Azure's do
	if err != nil || !blobs && !bytes.Contains(body, []byte("urn:eventyard:")) {
		return ""
	}
	return "a yard"
}

// soon is how long before its end a certificate is worth a word.
const soon = 14 * 24 * time.Hour

// examineCertificates sees whether the listeners with TLS have something to show. The yard
// renews its own; those of the operator are his to renew.
func (d *doctor) examineCertificates() {
	if !slices.ContainsFunc(d.cfg.Listeners(), func(l config.Listener) bool { return l.TLS && l.Open() }) {
		return
	}
	own := d.cfg.TLS.CertFile == ""
	info, err := describeCertificates(d.cfg)
	if err == nil && !own {
		_, err = tls.LoadX509KeyPair(d.cfg.TLS.CertFile, d.cfg.TLS.KeyFile)
	}
	text := fmt.Sprintf("the certificate for %s is valid until %s", oneLine(strings.Join(info.Names, ", ")), showTime(info.NotAfter))
	switch left := time.Until(info.NotAfter); {
	case own && errors.As(err, new(*advisedError)):
		d.note("tls", fine, "", "there is no certificate yet; serve will make one")
	case err != nil && own:
		d.note("tls", problem, "see whether the files can be read by the user that runs the yard, and are whole", "%v", err)
	case err != nil:
		d.note("tls", problem, nextForCertificateFiles, "%v", err)
	case !own && left <= 0:
		d.note("tls", problem, "get a new one: clients refuse this", "%s", strings.Replace(text, " is valid ", " was valid ", 1))
	case !own && left < soon:
		d.note("tls", warning, "get a new one in time; it is read when its file changes", "%s", text)
	default:
		d.note("tls", fine, "", "%s", text)
	}
}

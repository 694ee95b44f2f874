//go:build linux

package interop

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// What the tests of the Python library find in Azure beside the namespace, and an address for it.
const (
	azureManager = "management.azure.com"
	azureBlobs   = blobAccount + ".blob.core.windows.net"
	azureAddress = "127.0.0.3"
	blobAccount  = "eventyard"
)

// azure serves, over TLS, what the Python library's own tests want of Azure beside the namespace:
// the resource manager's hubs and keys, and a storage account. It hands all of it on to the yard. It
// returns the file of the certificate to trust.
func (y *yard) azure(t *testing.T) (certificate string) {
	t.Helper()
	at := "http://" + y.hostPort(t, "http")
	client, err := admin.New(admin.Config{Server: at})
	testkit.Must(t, err)
	target, err := url.Parse(at)
	testkit.Must(t, err)
	quiet := log.New(io.Discard, "", 0) // clients give up requests all the time
	mux := http.NewServeMux()
	hubManager{client}.serve(mux)
	mux.Handle(azureBlobs+"/", &httputil.ReverseProxy{ErrorLog: quiet, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = blobAccount + ".blob." + suiteHost
	}})
	pair, certificate := selfSigned(t, azureManager, azureBlobs)
	listener, err := tls.Listen("tcp", net.JoinHostPort(azureAddress, "443"), &tls.Config{Certificates: []tls.Certificate{pair}})
	testkit.Must(t, err)
	server := &http.Server{Handler: mux, ErrorLog: quiet}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close(); client.Close() })
	return certificate
}

// hubManager has a yard's hubs as Azure Resource Manager shows them.
type hubManager struct{ yard *admin.Client }

// managedHub is a hub there.
type managedHub struct {
	Name       string `json:"name"`
	Properties struct {
		PartitionCount         int `json:"partitionCount,omitempty"`
		MessageRetentionInDays int `json:"messageRetentionInDays,omitempty"`
	} `json:"properties"`
}

func (m hubManager) serve(mux *http.ServeMux) {
	const namespace = azureManager + "/subscriptions/{s}/resourceGroups/{g}/providers/Microsoft.EventHub/namespaces/{ns}"
	mux.HandleFunc("POST "+namespace+"/authorizationRules/{rule}/listKeys", m.keys)
	mux.HandleFunc("PUT "+namespace+"/eventhubs/{hub}", m.put)
	mux.HandleFunc("GET "+namespace+"/eventhubs/{hub}", m.get)
	mux.HandleFunc("DELETE "+namespace+"/eventhubs/{hub}", m.remove)
}

func (m hubManager) keys(w http.ResponseWriter, r *http.Request) {
	rule := r.PathValue("rule")
	answer(w, map[string]string{
		"keyName": rule, "primaryKey": keyOf(rule), "primaryConnectionString": connection(suiteHost, rule, ""),
	}, nil)
}

// put makes a hub, or changes how long it keeps events.
func (m hubManager) put(w http.ResponseWriter, r *http.Request) {
	var wanted managedHub
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		answer(w, nil, err)
		return
	}
	request := admin.HubRequest{Name: r.PathValue("hub")}
	if days := wanted.Properties.MessageRetentionInDays; days > 0 {
		age := fmt.Sprintf("%dh", 24*days)
		request.Retention = &admin.RetentionRequest{Age: &age}
	}
	if _, err := m.yard.Hub(r.Context(), request.Name); err == nil {
		made, err := m.yard.UpdateHub(r.Context(), request.Name, request)
		answer(w, managed(made), err)
		return
	}
	request.Partitions = &wanted.Properties.PartitionCount
	made, err := m.yard.CreateHub(r.Context(), request)
	answer(w, managed(made), err)
}

func (m hubManager) get(w http.ResponseWriter, r *http.Request) {
	found, err := m.yard.Hub(r.Context(), r.PathValue("hub"))
	answer(w, managed(found), err)
}

func (m hubManager) remove(w http.ResponseWriter, r *http.Request) {
	answer(w, nil, m.yard.DeleteHub(r.Context(), r.PathValue("hub")))
}

// managed shows a hub with a retention of a day, whatever it has: that is what the tests change.
func managed(h admin.Hub) (shown managedHub) {
	shown.Name = h.Name
	shown.Properties.PartitionCount, shown.Properties.MessageRetentionInDays = h.Partitions, 1
	return shown
}

func answer(w http.ResponseWriter, content any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if problem := (*admin.Problem)(nil); errors.As(err, &problem) {
		w.WriteHeader(problem.Status)
	} else if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
	if err != nil {
		content = map[string]any{"error": map[string]string{"code": "Refused", "message": err.Error()}}
	}
	json.NewEncoder(w).Encode(content)
}

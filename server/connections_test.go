package server

import (
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V5: who is connected is listed with what it shows, by pages, and which key of a policy was used.
func TestConnections(t *testing.T) {
	r := start(t, quick(t))
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":1}`)
	made := testkit.Value(r.admin().CreatePolicy(t.Context(), "", admin.PolicyRequest{Name: "till", Rights: []string{"Manage"}}))(t)
	client := testkit.Value(r.Dial(t.Context(), hub.Config{}))(t)
	defer client.Close()
	testkit.Must(t, testkit.Err(client.Hub("orders").Info(t.Context())))
	till := testkit.Value(admin.New(admin.Config{Server: r.url, ConnectionString: "Endpoint=sb://localhost/;SharedAccessKeyName=till;SharedAccessKey=" + made.SecondaryKey}))(t)
	defer till.Close()

	all := testkit.Value(till.Connections(t.Context(), "", 0))(t)
	protocols := map[string]admin.Connection{}
	for _, one := range all.Connections {
		protocols[one.Protocol] = one
	}
	testkit.Equal(t, all.Total, len(all.Connections), "connections in all")
	links := protocols[admin.ProtocolAMQP]
	testkit.That(t, links.ReceivedBytes > 0 && links.SentBytes > 0 && !links.Since.IsZero(), "AMQP has %+v", links)
	testkit.That(t, protocols[admin.ProtocolHTTP].Requests > 0 && protocols[admin.ProtocolHTTP].Address != "", "HTTP has %+v", protocols[admin.ProtocolHTTP])
	var use admin.KeyUse
	for _, one := range all.Keys {
		if one.Policy == "policies/till" {
			use = one
		}
	}
	testkit.That(t, use.Primary == nil && use.Secondary != nil && !all.Since.IsZero(), "the keys were used: %+v", use)

	var paged []string
	for after := ""; ; {
		page := testkit.Value(till.Connections(t.Context(), after, 1))(t)
		for _, one := range page.Connections {
			paged = append(paged, one.ID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	testkit.Equal(t, len(paged), all.Total, "connections of all pages")
}

// What accounts name policies by is shown as the API names them.
func TestHolderNames(t *testing.T) {
	for account, want := range map[string]string{
		"policies/namespace/till": "policies/till", "policies/hubs/a%2Fb/17/own": "hubs/a%2Fb/policies/own", "ann@example.com": "ann@example.com", "": "",
	} {
		testkit.Equal(t, holderName(account), want)
	}
}

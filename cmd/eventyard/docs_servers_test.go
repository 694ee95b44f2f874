package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/pages"
	"github.com/eventyard/eventyard/test/parts"
)

// ownServers is what the guide of clusters tells those who run servers of their own.
type ownServers struct {
	config string // the file of the first server
	key    string // the commands that make the yard's key
	serve  string // the command of the first node
}

// readOwnServers finds that in the guide.
func readOwnServers(t *testing.T) (found ownServers) {
	t.Helper()
	const page = "../../docs/guides/cluster.md"
	_, config, begins := strings.Cut(string(testkit.Value(os.ReadFile(page))(t)), "\n```\nserver_name: nats-1\n")
	config, _, ends := strings.Cut(config, "\n```\n")
	testkit.MustThat(t, begins && ends, "the guide has no nats-1.conf")
	found.config = "server_name: nats-1\n" + config + "\n"
	for _, b := range testkit.Value(pages.Read(page))(t) {
		switch {
		case strings.HasPrefix(b.Text, "openssl rand"):
			found.key = b.Text
		case strings.HasPrefix(b.Text, "eventyard serve --node node-1 "):
			found.serve = b.Text
		}
	}
	testkit.MustThat(t, found.key != "" && found.serve != "", "the guide has no commands for servers of their own")
	return found
}

// V7, C8: three nodes come up on three servers of their own from what the guide of clusters shows, with its
// configuration of the servers, its key and its command. Only addresses differ, all of which are this machine's.
func TestTheGuideOfServersOfTheirOwnIsRun(t *testing.T) {
	t.Parallel()
	const size = 3
	guide := readOwnServers(t)
	instead := map[string]string{}
	var hosts []string
	for i := range size {
		instead[fmt.Sprintf("10.0.0.%d", i+1)] = parts.OwnLoopback()
		hosts = append(hosts, parts.OwnLoopback())
	}
	address := regexp.MustCompile(`10\.0\.0\.[1-3]`)
	here := func(text string) string {
		return address.ReplaceAllStringFunc(text, func(a string) string { return instead[a] })
	}
	for i := range size {
		natstest.StartAs(t, func(_, folder string) string {
			name := fmt.Sprintf("nats-%d", i+1)
			config := guide.config
			for written, own := range map[string]string{
				"server_name: nats-1": "server_name: " + name, "/var/lib/nats": folder,
				"listen: 10.0.0.1": fmt.Sprintf("listen: 10.0.0.%d", i+1), "http: 10.0.0.1": fmt.Sprintf("http: 10.0.0.%d", i+1),
			} {
				testkit.That(t, strings.Contains(config, written), "nats-1.conf has no %q", written)
				config = strings.ReplaceAll(config, written, own)
			}
			return here(config)
		})
	}
	var page strings.Builder
	fmt.Fprintf(&page, "```sh\n%s\n```\n", guide.key)
	for i, host := range hosts {
		node, command := fmt.Sprintf("node-%d", i+1), here(guide.serve)
		for written, own := range map[string]string{
			"--node node-1 ": "--node " + node + " ", "0.0.0.0:5671": net.JoinHostPort(host, "5671"),
			"0.0.0.0:8443": net.JoinHostPort(host, "8443"), "127.0.0.1:8080": net.JoinHostPort(host, "8080"),
		} {
			testkit.That(t, strings.Contains(command, written), "the command of the guide has no %q", written)
			command = strings.ReplaceAll(command, written, own)
		}
		fmt.Fprintf(&page, "<!-- background: %s -->\n```sh\nenv EVENTYARD_KAFKA=%[2]s:9092 EVENTYARD_KAFKAS=%[2]s:9093 %[3]s\n```\n", node, host, command)
	}
	fmt.Fprintf(&page, "<!-- until -->\n```sh\neventyard cluster status --server http://%s:8080\n```\n", hosts[0])
	page.WriteString("```text\nnode-1 … live …\nnode-2 … live …\nnode-3 … live …\nyard shop on NATS servers, 3 replicas, …\n" +
		"nats-1 … always 8.0 MiB …\nnats-2 … always 8.0 MiB …\nnats-3 … always 8.0 MiB …\n```\n")
	fmt.Fprintf(&page, "```sh\neventyard hub create orders --server http://%s:8080\neventyard send orders hello --server http://%s:8080\n"+
		"eventyard read orders --server http://%s:8080\n```\n```text\n… hello\n```\n", hosts[0], hosts[1], hosts[2])
	file := filepath.Join(t.TempDir(), "servers.md")
	testkit.Must(t, os.WriteFile(file, []byte(page.String()), 0o600))
	newReader(t).Follow(t, file)
}

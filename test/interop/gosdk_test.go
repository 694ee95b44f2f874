//go:build linux

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// goSDKPackages are those with tests that need a live service.
var goSDKPackages = []string{".", "checkpoints", "internal"}

// goSDKLive are the live tests of each package that must have run, and passed. Whatever
// else the pattern below finds must pass or be skipped by name, too.
var goSDKLive = map[string][]string{
	".": {
		"TestClientsUnauthorizedCreds",
		"TestConsumerClient_Concurrent_NoEpoch",
		"TestConsumerClient_DefaultAzureCredential",
		"TestConsumerClient_GetHubAndPartitionProperties",
		"TestConsumerClient_InstanceID",
		"TestConsumerClient_LowerEpochsAreRejected",
		"TestConsumerClient_NoPrefetch",
		"TestConsumerClient_ReceiveEvents",
		"TestConsumerClient_Recovery",
		"TestConsumerClient_RecoveryLink",
		"TestConsumerClient_SameEpoch_StealsLink",
		"TestConsumerClient_StartPosition_Latest",
		"TestConsumerClient_StartPositions",
		"TestConsumerClient_UsingWebSockets",
		"TestConsumerClientUsingCustomEndpoint",
		"TestProcessor_Balanced",
		"TestProcessor_Balanced_AcquisitionOnly",
		"TestProcessor_Contention",
		"TestProcessor_Greedy",
		"TestProcessor_Greedy_AcquisitionOnly",
		"TestProcessor_PartitionsAreReqlinquished",
		"TestProcessor_Run",
		"TestProcessor_RunNotConcurrent",
		"TestProducerClient_AMQPAnnotatedMessages",
		"TestProducerClient_GetEventHubsProperties",
		"TestProducerClient_GetHubAndPartitionProperties",
		"TestProducerClient_SAS",
		"TestProducerClient_SendBatchExample",
		"TestProducerClient_SendToAny",
		"TestProducerClientUsingCustomEndpoint",
	},
	"checkpoints": {
		"TestBlobStore_Checkpoints",
		"TestBlobStore_ListAndClaim",
		"TestBlobStore_OnlyOneOwnershipClaimSucceeds",
		"TestBlobStore_OnlyOneOwnershipUpdateSucceeds",
		"TestBlobStore_Ownership",
		"TestBlobStore_RelinquishClaim",
	},
	"internal": {
		"TestLinkFailure",
		"TestLinkFailureWhenConnectionIsDead",
		"TestLinksCBSLinkStillOpen",
		"TestLinksManagementRetry",
		"TestLinksRecoverLinkWithConnectionFailure",
		"TestLinksRecoverLinkWithConnectionFailureAndExpiredContext",
		"TestRecoveryWithCancelledContext_Connection",
		"TestRecoveryWithCancelledContext_Link",
	},
}

// goSDKSkipped are live tests that cannot run against anything but Azure.
var goSDKSkipped = map[string]string{
	"TestConsumerClient_Detaches":       "asks Azure Resource Manager to change the hub",
	"TestConsumerClient_GeoReplication": "needs a namespace with geo-replication",
}

const goSDKPattern = "^(TestConsumerClient|TestProducerClient|TestClients|TestLink|TestRecovery|TestProcessor|TestBlobStore)"

// TestGoSDK runs the official Go library's own live tests, unchanged, as if the yard
// were a namespace in Azure: over TLS and WebSockets, with tokens, and with a blob
// service for its processor. // H4, H5, H6, H7, H8, H9, H10
func TestGoSDK(t *testing.T) {
	t.Parallel()
	sdk := goSDKTests(t)
	parts.AzuriteProgram(t)
	inNamespace(t, func(t *testing.T) {
		y := startYard(t, layout{
			hubs:     map[string]int{"eh": 4, "links": 1},
			settings: []string{"acceptAnyJwt: true"},
		})
		env := goSDKEnvironment(t, y)
		for name, reason := range goSDKSkipped {
			t.Logf("not run: %s: it %s", name, reason)
		}
		for _, pkg := range goSDKPackages {
			t.Run(pkg, func(t *testing.T) { runGoSDKPackage(t, filepath.Join(sdk, pkg), env, goSDKPattern, goSDKLive[pkg]) })
		}
	})
}

func goSDKEnvironment(t *testing.T, y *yard) []string {
	t.Helper()
	blobs, certificate := startAzurite(t).front(t, namespaceHost)
	return goSDKEnvironmentWith(blobs, joinFiles(t, y.authority(t), certificate))
}

// goSDKEnvironmentWith tells the tests of a blob service, and whom to trust.
func goSDKEnvironmentWith(blobs, authorities string) []string {
	return environment(map[string]string{
		"EVENTHUB_NAMESPACE":                     namespaceHost,
		"EVENTHUB_NAME":                          "eh",
		"EVENTHUB_LINKSONLY_NAME":                "links",
		"CHECKPOINTSTORE_STORAGE_ENDPOINT":       blobs,
		"AZURE_SUBSCRIPTION_ID":                  "none",
		"RESOURCE_GROUP":                         "none",
		"EVENTHUB_CONNECTION_STRING":             connection(namespaceHost, rootPolicy, ""),
		"EVENTHUB_CONNECTION_STRING_LISTEN_ONLY": connection(namespaceHost, "listener", ""),
		"EVENTHUB_CONNECTION_STRING_SEND_ONLY":   connection(namespaceHost, "sender", ""),
		"SSL_CERT_FILE":                          authorities,
	})
}

func runGoSDKPackage(t *testing.T, dir string, env []string, pattern string, required []string) {
	skipped := slices.Sorted(maps.Keys(goSDKSkipped))
	cmd := exec.Command("go", "tool", "test2json", "-t", "./live.test", "-test.v=test2json", "-test.timeout=10m",
		"-test.run="+pattern, "-test.skip=^("+strings.Join(skipped, "|")+")$")
	cmd.Dir, cmd.Env = dir, env
	p := launch(t, cmd)
	err := p.finish(t, timeLeft(t))
	results, text := readTestOutput(p.out.String())
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		t.Logf("%-4s %6.2fs %s", r.action, r.seconds, name)
		if r.action != "pass" {
			t.Errorf("%s: %s\n%s", r.action, name, parts.Tail(text[name], 6000))
		}
	}
	for _, name := range required {
		testkit.Equal(t, results[name].action, "pass", "%s did not run and pass", name)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, parts.Tail(text[""], 4000))
	}
}

// result is how a foreign test ended.
type result struct {
	action  string
	seconds float64
}

// readTestOutput takes go test's JSON lines apart: how each test ended, and what it
// wrote; a subtest's lines count for its parent, too.
func readTestOutput(lines string) (map[string]result, map[string]string) {
	results, text := map[string]result{}, map[string]string{}
	decoder := json.NewDecoder(strings.NewReader(lines))
	for {
		var event struct {
			Time                 time.Time
			Action, Test, Output string
			Elapsed              float64
		}
		if err := decoder.Decode(&event); err != nil {
			return results, text
		}
		switch event.Action {
		case "output":
			top, _, _ := strings.Cut(event.Test, "/")
			text[event.Test] += event.Output
			if top != event.Test {
				text[top] += event.Output
			}
		case "pass", "fail", "skip":
			if event.Test != "" {
				results[event.Test] = result{event.Action, event.Elapsed}
			}
		}
	}
}

// moduleFolder downloads a module by the ordinary means and tells where it is.
func moduleFolder(ctx context.Context, module string) (string, error) {
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Stderr = os.TempDir(), &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w\n%s%s", module, err, out, complaints.String())
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return "", err
	}
	return downloaded.Dir, nil
}

func joinFiles(t *testing.T, paths ...string) string {
	t.Helper()
	var all []byte
	for _, path := range paths {
		content, err := os.ReadFile(path)
		testkit.Must(t, err)
		all = append(append(all, content...), '\n')
	}
	joined := filepath.Join(t.TempDir(), "joined.pem")
	testkit.Must(t, os.WriteFile(joined, all, 0o644))
	return joined
}

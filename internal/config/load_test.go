package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// write puts a file into a folder of its own and makes that the working folder, so
// that messages show bare names.
func write(t *testing.T, name, content string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	testkit.Must(t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

func TestNothingAtAllIsAWorkingConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := Load(Sources{})
	testkit.Must(t, err)
	testkit.Equal(t, got.File, "", "read %q with warnings %q out of nothing", got.File, got.Warnings)
	testkit.Equal(t, len(got.Warnings), 0, "read %q with warnings %q out of nothing", got.File, got.Warnings)
	c := got.Config
	if c.Data != "eventyard-data" || c.Sync != "always" || c.HTTP != "127.0.0.1:8080" || c.AMQP != "127.0.0.1:5672" ||
		c.AMQPS != "127.0.0.1:5671" || c.HTTPS != "127.0.0.1:8443" || c.Kafka != "127.0.0.1:9092" || c.Kafkas != "127.0.0.1:9093" || c.AcceptAnyJWT || c.AllowPlaintext {
		t.Errorf("defaults are %+v", c)
	}
}

func TestFlagsWinOverEnvironmentOverFileOverDefaults(t *testing.T) {
	write(t, DefaultFile, "data: from-file\nsync: os\nlog: {level: debug}\nsegmentBytes: 1MiB\n")
	got, err := Load(Sources{
		Environ: []string{"EVENTYARD_SYNC=interval", "EVENTYARD_LOG_LEVEL=warn", "EVENTYARD_DATA=", "PATH=/bin"},
		Flags:   map[string]string{"log-level": "error"},
	})
	testkit.Must(t, err)
	c := got.Config
	if c.Data != "from-file" || c.Sync != "interval" || c.Log.Level != "error" || c.SegmentBytes != 1<<20 || c.Log.Format != "text" {
		t.Errorf("merged into %+v", c)
	}
	testkit.Equal(t, got.File, DefaultFile, "file")
}

func TestTheFileIsFoundByFlagThenVariableThenName(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"flag", "variable", DefaultFile} {
		testkit.Must(t, os.WriteFile(name, []byte("data: "+name), 0o600))
	}
	variable := []string{EnvConfig + "=variable"}
	for want, from := range map[string]Sources{
		"flag":      {File: "flag", Environ: variable},
		"variable":  {Environ: variable},
		DefaultFile: {},
	} {
		got, err := Load(from)
		if err != nil || got.Config.Data != want || got.File != want {
			t.Errorf("want the file %s, got %+v, %v", want, got, err)
		}
	}
}

func TestHubsCanBeDeclared(t *testing.T) {
	write(t, DefaultFile, `
hubs:
  - name: orders
    partitions: 4
    retention: {age: 24h, bytes: 1GiB}
    groups: [billing, $Default]
  - name: plain
  - name: kept
    retention:
      age: 0
`)
	got, err := Load(Sources{})
	testkit.Must(t, err)
	want := []admin.HubRequest{
		{
			Name: "orders", Partitions: new(4), Retention: &admin.RetentionRequest{Age: new("24h"), Bytes: new(int64(1 << 30))},
			Groups: []string{"billing", "$Default"},
		},
		{Name: "plain"},
		{Name: "kept", Retention: &admin.RetentionRequest{Age: new("0s")}},
	}
	testkit.Diff(t, want, got.Config.Hubs)
}

func TestErrorsAreReportedWithTheirPosition(t *testing.T) {
	for name, test := range map[string]struct {
		file    string
		environ []string
		flags   map[string]string
		want    []string
	}{
		"an unknown key names the nearest right one":    {file: "data: x\nsnyc: os\n", want: []string{`eventyard.yaml:2:1: unknown key "snyc", did you mean "sync"?`}},
		"a key that is within another":                  {file: "loglevel: debug\n", want: []string{`eventyard.yaml:1:1: unknown key "loglevel", did you mean "log.level"?`}},
		"the same, as one word of two":                  {file: "logLevel: debug\n", want: []string{`eventyard.yaml:1:1: unknown key "logLevel", did you mean "log.level"?`}},
		"case matters in our own file":                  {file: "publicURL: http://a\n", want: []string{`eventyard.yaml:1:1: unknown key "publicURL", did you mean "publicUrl"?`}},
		"an unknown key inside a hub":                   {file: "hubs:\n  - name: a\n    retension: {age: 1h}\n", want: []string{`eventyard.yaml:3:5: unknown key "retension", did you mean "retention"?`}},
		"an unknown key inside a flow mapping":          {file: "hubs: [{name: a, retention: {agee: 1h}}]\n", want: []string{`eventyard.yaml:1:30: unknown key "agee", did you mean "age"?`}},
		"a key that is like no other":                   {file: "zzzqq: 1\nsync: maybe\n", want: []string{"unknown key \"zzzqq\"\n", "interval, os"}},
		"a namespace that is no name":                   {flags: map[string]string{"namespace": "a b"}, want: []string{`--namespace: namespace: "a b" is no name of a namespace`}},
		"a tab":                                         {file: "hubs:\n\t- name: x\n", want: []string{"eventyard.yaml:2:1: a tab begins this line: indent with blanks"}},
		"a list without end":                            {file: "a: [1\n", want: []string{"a list begins with [ here and does not end with ]"}},
		"all of them at once":                           {file: "foo: 1\nsync: maybe\n", want: []string{`unknown key "foo"`, `eventyard.yaml:2:7: sync: "maybe" is not one of always, interval, os`}},
		"a bad duration":                                {file: "syncInterval: soon\n", want: []string{`eventyard.yaml:1:15: syncInterval: "soon" is no duration`}},
		"a bad duration in a hub":                       {file: "hubs:\n- name: a\n  retention: {age: 3 days}\n", want: []string{`eventyard.yaml:3:20: hubs[0].retention.age: "3 days" is no duration`}},
		"a number without a unit":                       {file: "grace: 5\n", want: []string{`"5" is no duration`}},
		"a bad size":                                    {file: "segmentBytes: 64M\n", want: []string{`"64M" is no size: the units are`}},
		"a size out of bounds":                          {file: "segmentBytes: 1B\n", want: []string{"segmentBytes: 1 is not between 64KiB and 1GiB"}},
		"a list where a value is wanted":                {file: "data: [a]\n", want: []string{"eventyard.yaml:1:7: data: a single value is wanted here, not a list"}},
		"a value where a mapping is wanted":             {file: "log: debug\n", want: []string{"log: a mapping is wanted here, not a single value"}},
		"a file that is no mapping":                     {file: "just text\n", want: []string{"a mapping is wanted here"}},
		"broken syntax":                                 {file: "data: [a\n", want: []string{"eventyard.yaml:1:"}},
		"a key twice":                                   {file: "data: a\ndata: b\n", want: []string{"eventyard.yaml:2:1:"}},
		"anchors":                                       {file: "data: &a x\nhost: *a\n", want: []string{"anchor is not supported here"}},
		"two documents":                                 {file: "data: a\n---\ndata: b\n", want: []string{"a second document begins here"}},
		"servers without a secret key":                  {flags: map[string]string{"engine": "nats://me:pw@a,b"}, want: []string{`secrets: every node of a yard on NATS servers is given the same secret key`}},
		"an engine with a password":                     {flags: map[string]string{"engine": "NATS://me:pw@a?system=me:pw"}, want: []string{`"NATS://a" is no engine: use disk or nats://HOST:PORT`}},
		"an engine nobody knows":                        {flags: map[string]string{"engine": "floppy"}, want: []string{`"floppy" is no engine: use disk or nats://HOST:PORT`}},
		"a node on one machine":                         {flags: map[string]string{"node": "a"}, want: []string{`are for an engine nats://HOST:PORT`}},
		"two replicas":                                  {flags: map[string]string{"replicas": "2"}, want: []string{`replicas: 2 is not possible: use 1, 3 or 5`}},
		"more streams than a hub may have":              {flags: map[string]string{"hub-streams": "17"}, want: []string{`hubStreams: 17 is not possible: use 1 to 16`}},
		"streams that would be full at once":            {flags: map[string]string{"stream-bytes": "1MiB"}, want: []string{`streamBytes: 1MiB is not possible: use 1GiB or more`}},
		"streams on one machine":                        {flags: map[string]string{"hub-streams": "4"}, want: []string{`are for an engine nats://HOST:PORT`}},
		"an outside address of the Kafka listener":      {environ: []string{"EVENTYARD_KAFKA=:9092"}, want: []string{"EVENTYARD_KAFKA: kafka: ", "use kafkas, or set allowPlaintext"}},
		"any token where Kafka clients can send one":    {file: "acceptAnyJwt: true\nkafkas: :9093\n", want: []string{`the listener kafkas at ":9093" can be reached`}},
		"a host to advertise without a port":            {flags: map[string]string{"kafka-advertise": "yard"}, want: []string{`--kafka-advertise: kafkaAdvertise: "yard" is no address that a client could connect to`}},
		"a port to advertise without a host":            {flags: map[string]string{"kafkas-advertise": ":9093"}, want: []string{`kafkasAdvertise: ":9093" is no address`}},
		"all addresses to advertise":                    {flags: map[string]string{"kafka-advertise": "0.0.0.0:9092"}, want: []string{`"0.0.0.0:9092" is no address that a client could connect to`}},
		"any port to advertise":                         {flags: map[string]string{"kafka-advertise": "yard:0"}, want: []string{`"yard:0" is no address that a client could connect to`}},
		"all interfaces":                                {flags: map[string]string{"http": ":8080"}, want: []string{`--http: http: ":8080" can be reached from other machines, and what goes through this listener is not encrypted: use https, or set allowPlaintext`}},
		"an outside address":                            {file: "http: 192.168.1.4:80\n", want: []string{"eventyard.yaml:1:7: http: ", "use https, or set allowPlaintext"}},
		"an outside address of the AMQP listener":       {file: "amqp: 192.168.1.4:5672\n", want: []string{"eventyard.yaml:1:7: amqp: ", "use amqps, or set allowPlaintext"}},
		"a name that may be anywhere":                   {flags: map[string]string{"http": "yard.example.com:80"}, want: []string{"can be reached from other machines"}},
		"any token where others can send one":           {file: "acceptAnyJwt: true\namqps: :5671\n", want: []string{`eventyard.yaml:1:15: acceptAnyJwt: it lets everybody in and is for development only, while the listener amqps at ":5671" can be reached`}},
		"any token and those of an issuer":              {file: "acceptAnyJwt: true\noidc: {issuer: https://a, audience: b}\n", want: []string{"acceptAnyJwt: it would take every token"}},
		"an issuer without audience":                    {file: "oidc:\n  issuer: https://a\n", want: []string{"eventyard.yaml:2:11: oidc.issuer: it needs oidc.audience"}},
		"an audience without issuer":                    {flags: map[string]string{"oidc-audience": "a"}, want: []string{"--oidc-audience: oidc.audience: it needs oidc.issuer"}},
		"a client without issuer":                       {flags: map[string]string{"oidc-client-id": "a"}, want: []string{"--oidc-client-id: oidc.clientId: it needs oidc.issuer"}},
		"a scope without client":                        {file: "oidc: {issuer: https://a, audience: b, scope: c}\n", want: []string{"oidc.scope: it needs oidc.clientId"}},
		"an issuer that is no URL":                      {flags: map[string]string{"oidc-issuer": "login", "oidc-audience": "a"}, want: []string{`"login" is no URL`}},
		"an issuer without TLS":                         {flags: map[string]string{"oidc-issuer": "http://login.example.com", "oidc-audience": "a"}, want: []string{"use https"}},
		"a certificate without its key":                 {flags: map[string]string{"tls-cert-file": "a.pem"}, want: []string{"--tls-cert-file: tls.certFile: it needs its private key"}},
		"a key without its certificate":                 {flags: map[string]string{"tls-key-file": "a.pem"}, want: []string{"--tls-key-file: tls.keyFile: it needs its certificate"}},
		"neither true nor false":                        {environ: []string{"EVENTYARD_ALLOW_PLAINTEXT=perhaps"}, want: []string{`EVENTYARD_ALLOW_PLAINTEXT: "perhaps" is neither true nor false`}},
		"an idle time-out that .NET refuses":            {flags: map[string]string{"amqp-idle-timeout": "4s"}, want: []string{"amqpIdleTimeout: 4s is not between 5s and 1h"}},
		"an idle time-out too long":                     {flags: map[string]string{"amqp-idle-timeout": "2h"}, want: []string{"amqpIdleTimeout: 2h is not between 5s and 1h"}},
		"no connections":                                {flags: map[string]string{"amqp-max-connections": "0"}, want: []string{"amqpMaxConnections: 0 is not at least 1"}},
		"no HTTP connections":                           {flags: map[string]string{"http-max-connections": "0"}, want: []string{"httpMaxConnections: 0 is not at least 1"}},
		"no Kafka connections":                          {flags: map[string]string{"kafka-max-connections": "0"}, want: []string{"kafkaMaxConnections: 0 is not at least 1"}},
		"a policy without a name":                       {file: "policies:\n  - rights: [send]\n", want: []string{"eventyard.yaml:2:", "policies[0].name: the policy needs a name"}},
		"a policy of the yard's own name":               {file: "policies:\n  - name: rootmanagesharedaccesskey\n    rights: [send]\n", want: []string{"eventyard.yaml:2:11: policies[0].name: RootManageSharedAccessKey is the yard's own"}},
		"a policy with a bad name":                      {file: "policies: [{name: a/b, rights: [send]}]\n", want: []string{`"a/b" is no name`}},
		"a policy with a long name":                     {file: "policies: [{name: " + strings.Repeat("a", 65) + ", rights: [send]}]\n", want: []string{"1 to 64 letters"}},
		"a policy of a hub with a bad name":             {file: "policies: [{name: a, hub: b c, rights: [send]}]\n", want: []string{`policies[0].hub: "b c" is no name`}},
		"a policy of what is a part of a hub":           {file: "policies: [{name: a, hub: b/partitions/0, rights: [send]}]\n", want: []string{`policies[0].hub: "b/partitions/0" cannot be told from a part`}},
		"a policy twice":                                {file: "policies:\n  - {name: a, rights: [send]}\n  - {name: A, rights: [send]}\n", want: []string{`eventyard.yaml:3:12: policies[1].name: policy "A" is already policies[0]`}},
		"a policy without rights":                       {file: "policies: [{name: a}]\n", want: []string{"policies[0].rights: ", "Send, Listen"}},
		"a policy with a right nobody knows":            {file: "policies: [{name: a, rights: [read]}]\n", want: []string{"policies[0].rights: ", "Send, Listen"}},
		"a policy with a key that everybody knows":      {file: "policies: [{name: a, rights: [send], primaryKey: SAS_KEY_VALUE}]\n", want: []string{"policies[0].primaryKey: this key is known to everybody"}},
		"a policy with a key that fits nowhere":         {file: "policies: [{name: a, rights: [send], secondaryKey: 'a;bcdefghijklmnopq'}]\n", want: []string{"policies[0].secondaryKey: a key has 16 to 256 characters"}},
		"a policy with a key that can be guessed":       {file: "policies: [{name: a, rights: [send], primaryKey: secret}]\n", want: []string{"policies[0].primaryKey: a key has 16 to 256 characters"}},
		"an address without a port":                     {flags: map[string]string{"http": "localhost"}, want: []string{`"localhost" is no address: write it like 127.0.0.1:8080, or off`}},
		"a port out of range":                           {flags: map[string]string{"http": "localhost:70000"}, want: []string{`"70000" is no port`}},
		"an empty address":                              {flags: map[string]string{"http": ""}, want: []string{`"" is no address`}},
		"no data folder":                                {flags: map[string]string{"data": ""}, want: []string{"--data: data: name a folder"}},
		"no namespace":                                  {flags: map[string]string{"namespace": ""}, want: []string{"--namespace"}},
		"a public URL that is none":                     {flags: map[string]string{"public-url": "yard"}, want: []string{`"yard" is no URL`}},
		"a host with a port":                            {flags: map[string]string{"host": "a:1"}, want: []string{`"a:1" is no host name`}},
		"a wrong log level":                             {flags: map[string]string{"log-level": "inf"}, want: []string{"did you mean info?"}},
		"a wrong log format":                            {flags: map[string]string{"log-format": "xml"}, want: []string{"log.format"}},
		"a grace that is no duration":                   {environ: []string{"EVENTYARD_GRACE=x"}, want: []string{`EVENTYARD_GRACE: "x" is no duration`}},
		"a grace too long":                              {flags: map[string]string{"grace": "2h"}, want: []string{"grace: 2h is not between"}},
		"a sync interval too long":                      {flags: map[string]string{"sync-interval": "2m"}, want: []string{"syncInterval: 2m is not between"}},
		"a hub without a name":                          {file: "hubs:\n  - partitions: 1\n", want: []string{"eventyard.yaml:2:", "hubs[0].name: the hub needs a name"}},
		"a hub twice, in another case":                  {file: "hubs:\n  - name: a\n  - name: A\n", want: []string{`eventyard.yaml:3:11: hubs[1].name: hub "A" is already hubs[0]`}},
		"a hub with no partition":                       {file: "hubs: [{name: a, partitions: 0}]\n", want: []string{"hubs[0].partitions: 0: give 1 to 1024"}},
		"a hub with too many partitions":                {file: "hubs: [{name: a, partitions: 1025}]\n", want: []string{"1025: give 1 to 1024"}},
		"a hub with a word for its partitions":          {file: "hubs: [{name: a, partitions: many}]\n", want: []string{`"many" is no whole number`}},
		"a group without a name":                        {file: "hubs: [{name: a, groups: ['']}]\n", want: []string{`hubs[0].groups[0]: "" is no name`}},
		"a hub with a space in its name":                {file: "hubs: [{name: a b}]\n", want: []string{`eventyard.yaml:1:15: hubs[0].name: "a b" is no name: use`}},
		"a hub named like a part of another":            {file: "hubs: [{name: a/Messages/b}]\n", want: []string{`eventyard.yaml:1:15: hubs[0].name: "a/Messages/b" cannot be told from a part of another hub: choose another word than "messages"`}},
		"a hub that ends in a dash":                     {file: "hubs: [{name: a-}]\n", want: []string{`"a-" is no name`}},
		"Config.json with broken syntax":                {file: "{\n  \"UserConfig\": {\n", want: []string{"eventyard.yaml:3:1: the file ends too early"}},
		"Config.json with something missing":            {file: `{"UserConfig" 1}`, want: []string{"eventyard.yaml:1:15: "}},
		"Config.json with a wrong partition count":      {file: `{"UserConfig":{"NamespaceConfig":[{"Entities":[{"Name":"a","PartitionCount":"two"}]}]}}`, want: []string{`"two" is no whole number`}},
		"Config.json with no partitions":                {file: `{"UserConfig":{"NamespaceConfig":[{"Entities":[{"Name":"a","PartitionCount":0}]}]}}`, want: []string{"give 1 to 1024"}},
		"Config.json with the same hub twice":           {file: `{"UserConfig":{"NamespaceConfig":[{"Entities":[{"Name":"a","PartitionCount":1},{"Name":"A","PartitionCount":1}]}]}}`, want: []string{`hub "A" is already`}},
		"Config.json with something behind":             {file: `{"UserConfig":{}} x`, want: []string{"something follows"}},
		"Config.json with a mapping in place of a list": {file: `{"UserConfig":{"NamespaceConfig":{}}}`, want: []string{"a list is wanted here, not a mapping"}},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, DefaultFile, test.file)
			_, err := Load(Sources{Environ: test.environ, Flags: test.flags})
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q\nlacks %q", err, want)
				}
			}
		})
	}
}

func TestAFileThatWasNamedMustBeThere(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Load(Sources{File: "nowhere.yaml"}); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("error is %v", err)
	}
}

func TestAFlagMendsWhatTheFileHasWrong(t *testing.T) {
	write(t, DefaultFile, "http: 0.0.0.0:80\n") // which is not encrypted
	testkit.Check(t, testkit.Err(Load(Sources{Flags: map[string]string{"http": "localhost:0"}})))
}

func TestAVariableThatIsNoSettingIsAWarning(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := Load(Sources{Environ: []string{"EVENTYARD_DAAT=/x", "EVENTYARD_SERVER=http://x", "EVENTYARD_CONNECTION_STRING=x"}})
	want := []string{"environment: EVENTYARD_DAAT is no setting, did you mean EVENTYARD_DATA?"}
	if err != nil || !cmp.Equal(want, got.Warnings) {
		t.Errorf("got %q, %v", got.Warnings, err)
	}
}

func TestWhatIsOnLoopback(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "127.9.9.9:80", "[::1]:8080", "localhost:8080", "LOCALHOST:1", "[::ffff:127.0.0.1]:1"} {
		d := Listener{Name: "http", Address: address}
		if !d.OnLoopback() || d.Check() != nil || d.CheckPlaintext(false) != nil || d.CheckDevelopment() != nil {
			t.Errorf("%s: %v, %v", address, d.Check(), d.CheckPlaintext(false))
		}
	}
	for _, address := range []string{":0", "0.0.0.0:80", "[::]:8080", "yard.example.com:1", "localhost.example.com:1", "10.0.0.1:1", "127.0.0.1"} {
		if d := (Listener{Name: "http", Address: address}); d.OnLoopback() || d.CheckPlaintext(false) == nil || d.CheckDevelopment() == nil {
			t.Errorf("%s counts as loopback", address)
		}
	}
}

// Beyond loopback a listener has TLS, or somebody said in so many words that it need not.
func TestListenersBeyondLoopback(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, flags := range map[string]map[string]string{
		"with TLS":             {"amqps": ":5671", "https": "0.0.0.0:8443"},
		"as they are":          {"amqp": ":5672", "http": "10.0.0.1:8080", "allow-plaintext": "true"},
		"on loopback with any": {"accept-any-jwt": "TRUE"},
		"an issuer here":       {"oidc-issuer": "http://127.0.0.1:9000/realm", "oidc-audience": "yard"},
	} {
		testkit.Check(t, testkit.Err(Load(Sources{Flags: flags})), "%s", name)
	}
}

func TestPoliciesCanBeDeclared(t *testing.T) {
	write(t, DefaultFile, policyExample+"  - {name: all, rights: [Manage]}\nallowPlaintext: true\n")
	got, err := Load(Sources{})
	testkit.Must(t, err)
	want := []admin.PolicyRequest{
		{Name: "till", Hub: "orders", Rights: []string{"send"}, PrimaryKey: "16-characters-or-more-that-nobody-guesses", SecondaryKey: "another-one-while-the-first-is-replaced"},
		{Name: "all", Rights: []string{"Manage"}},
	}
	if diff := cmp.Diff(want, got.Config.Policies); diff != "" || !got.Config.AllowPlaintext {
		t.Error(diff)
	}
}

func TestTheReferenceIsAFileThatChangesNothing(t *testing.T) {
	var b strings.Builder
	testkit.Must(t, WriteReference(&b))
	file := write(t, "reference.yaml", b.String())
	got, err := Load(Sources{File: file})
	if err != nil {
		t.Fatalf("%v\nin:\n%s", err, b.String())
	}
	testkit.Diff(t, Default(), got.Config)
	for _, s := range Settings() {
		if s.Help == "" || !strings.Contains(b.String(), "--"+s.Flag+", variable "+s.Env+".") {
			t.Errorf("%s lacks help or is not in the reference", s.Key)
		}
	}
	if _, err := Load(Sources{File: write(t, "example.yaml", hubExample+policyExample+topicExample+subscriptionExample)}); err != nil {
		t.Errorf("the examples of the reference: %v", err)
	}
}

// Every flag that the yard promises exists under its name.
func TestNamesOfFlagsAndVariables(t *testing.T) {
	names := map[string]string{}
	for _, s := range Settings() {
		names[s.Flag] = s.Env
	}
	for flag, env := range map[string]string{
		"data": "EVENTYARD_DATA", "engine": "EVENTYARD_ENGINE", "sync": "EVENTYARD_SYNC", "amqp": "EVENTYARD_AMQP",
		"amqps": "EVENTYARD_AMQPS", "http": "EVENTYARD_HTTP", "https": "EVENTYARD_HTTPS", "kafka": "EVENTYARD_KAFKA",
		"kafkas": "EVENTYARD_KAFKAS", "kafka-advertise": "EVENTYARD_KAFKA_ADVERTISE", "kafkas-advertise": "EVENTYARD_KAFKAS_ADVERTISE", "kafka-brokers": "EVENTYARD_KAFKA_BROKERS",
		"host": "EVENTYARD_HOST", "public-url": "EVENTYARD_PUBLIC_URL", "log-level": "EVENTYARD_LOG_LEVEL",
		"tls-cert-file": "EVENTYARD_TLS_CERT_FILE", "tls-client-ca-file": "EVENTYARD_TLS_CLIENT_CA_FILE",
		"allow-plaintext": "EVENTYARD_ALLOW_PLAINTEXT", "accept-any-jwt": "EVENTYARD_ACCEPT_ANY_JWT",
		"oidc-issuer": "EVENTYARD_OIDC_ISSUER", "amqp-idle-timeout": "EVENTYARD_AMQP_IDLE_TIMEOUT",
		"grid-allow": "EVENTYARD_GRID_ALLOW", "grid-dead-delay": "EVENTYARD_GRID_DEAD_DELAY", "grid-dead-folders": "EVENTYARD_GRID_DEAD_FOLDERS",
	} {
		if names[flag] != env {
			t.Errorf("--%s goes with %q, want %q", flag, names[flag], env)
		}
	}
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte(hubExample + policyExample + topicExample + subscriptionExample))
	f.Add([]byte("data: &a x\nhost: *a\nlog: {level: [}"))
	f.Add([]byte("? a\n: b\n--- |\n x\n...\n<<: *b"))
	f.Fuzz(func(t *testing.T, data []byte) { checkReading(t, data) })
}

func FuzzEmulatorConfig(f *testing.F) {
	seeds, _ := filepath.Glob("testdata/*.json")
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		testkit.Must(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// The reader is asked for what is no such file too: it must not rely on it.
		l := &loader{config: Default(), file: "Config.json", origins: map[string]string{}}
		if err := l.readEmulator(data); err == nil {
			l.config.validate(nil)
		}
		checkReading(t, data)
	})
}

// checkReading holds for any content: no panic, and either a configuration or at
// least one problem that names the file.
func checkReading(t *testing.T, data []byte) {
	l := &loader{config: Default(), file: "f.yaml", origins: map[string]string{}}
	l.read(data)
	for _, c := range l.config.validate(nil) {
		l.complain(l.origin(c.key), c.key, c.reason)
	}
	for _, err := range l.problems {
		if !strings.HasPrefix(err.Error(), "f.yaml") {
			t.Errorf("problem without a place: %v", err)
		}
	}
}

// The error for a name that the yard keeps for itself has its line and column, as others have.
func TestReservedNamesAreReportedWithTheirPosition(t *testing.T) {
	from := Sources{File: write(t, "c.yaml", "hubs:\n  - name: fine\n  - name: API/x\n"), ReservedNames: []string{"api"}}
	_, err := Load(from)
	if err == nil || !strings.HasPrefix(err.Error(), `c.yaml:3:11: hubs[1].name: "api" is a path`) {
		t.Errorf("error is %v", err)
	}
	from.ReservedNames = nil
	testkit.Check(t, testkit.Err(Load(from)), "where nothing is reserved")
}

func TestWhoIsToBlame(t *testing.T) {
	file := write(t, "c.yaml", "sync: never\n")
	for name, test := range map[string]struct {
		from Sources
		want bool
	}{
		"nobody":          {Sources{}, false},
		"the file":        {Sources{File: file}, false},
		"a variable":      {Sources{Environ: []string{"EVENTYARD_HTTP=:8080"}}, false},
		"a flag":          {Sources{Flags: map[string]string{"http": ":8080"}}, true},
		"a flag's form":   {Sources{Flags: map[string]string{"grace": "x"}}, true},
		"both":            {Sources{File: file, Flags: map[string]string{"http": ":8080"}}, true},
		"a file not here": {Sources{File: "nowhere.yaml"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(test.from); BlamesFlag(err) != test.want {
				t.Errorf("%v blames a flag: %t", err, !test.want)
			}
		})
	}
}

// C8: what stands beside the engine is a part of its URL.
func TestEngineURL(t *testing.T) {
	for want, c := range map[string]Config{
		"disk":                {Engine: "disk"},
		"nats://a,b":          {Engine: "nats://a,b"},
		"nats://a?yard=north": {Engine: "nats://a", Yard: "north"},
		"nats://a?streams=4&streambytes=2147483648": {Engine: "nats://a", HubStreams: 4, StreamBytes: 2 << 30},
		"tls://a?ca=x&yard=north&replicas=5":        {Engine: "tls://a?ca=x", Yard: "north", Replicas: 5},
	} {
		testkit.Equal(t, c.EngineURL(), want)
	}
}

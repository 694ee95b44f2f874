// Package config turns flags, environment and a file into one struct. Settings are described
// once, in a row each (rows.go), and definitions that must exist in package spec: from these follow
// flags, environment variables, the readers of both file formats and the printed reference.
//
// Flags win over the environment, the environment over the file, the file over the
// defaults. Nothing at all is a working configuration.
package config

import (
	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
)

// Config is every setting of a yard. A field's key tag is its name in the file;
// the flag and the variable follow from it (log.level: --log-level, EVENTYARD_LOG_LEVEL).
type Config struct {
	Data   string `key:"data"`
	Engine string `key:"engine"`
	// Node, Yard, Replicas, HubStreams, StreamBytes and NATSUnsafe are of an engine on NATS servers.
	Node        string        `key:"node"`
	Yard        string        `key:"yard"`
	Replicas    int           `key:"replicas"`
	HubStreams  int           `key:"hubStreams"`
	StreamBytes quantity.Size `key:"streamBytes"`
	NATSUnsafe  bool          `key:"natsUnsafe"`
	// Cluster is of a node with one of the yard's NATS servers inside.
	Cluster Cluster `key:"cluster"`

	Sync         string            `key:"sync"`
	SyncInterval quantity.Duration `key:"syncInterval"`
	SegmentBytes quantity.Size     `key:"segmentBytes"`

	AMQP       string `key:"amqp"`
	AMQPS      string `key:"amqps"`
	HTTP       string `key:"http"`
	HTTPS      string `key:"https"`
	Kafka      string `key:"kafka"`
	Kafkas     string `key:"kafkas"`
	DevStorage string `key:"devStorage"`
	// KafkaAdvertise and KafkasAdvertise are where clients of the two listeners are led.
	KafkaAdvertise  string `key:"kafkaAdvertise"`
	KafkasAdvertise string `key:"kafkasAdvertise"`
	// KafkaBrokers is which brokers clients hear of where several nodes share a yard: BrokersAll or BrokersOne.
	KafkaBrokers string `key:"kafkaBrokers"`
	// KafkaAutoCreate has clients that manage the namespace create topics by naming them.
	KafkaAutoCreate bool `key:"kafkaAutoCreate"`

	AllowPlaintext bool `key:"allowPlaintext"`
	AcceptAnyJWT   bool `key:"acceptAnyJwt"`

	Namespace string `key:"namespace"`
	Host      string `key:"host"`
	PublicURL string `key:"publicUrl"`

	Secrets Secrets `key:"secrets"`

	TLS  TLS  `key:"tls"`
	OIDC OIDC `key:"oidc"`
	Blob Blob `key:"blob"`

	AMQPIdleTimeout     quantity.Duration `key:"amqpIdleTimeout"`
	AMQPMaxConnections  int               `key:"amqpMaxConnections"`
	HTTPMaxConnections  int               `key:"httpMaxConnections"`
	KafkaMaxConnections int               `key:"kafkaMaxConnections"`

	Quota Quota `key:"quota"`

	Grid   Grid   `key:"grid"`
	Notify Notify `key:"notify"`

	OTLP     OTLP   `key:"otlp"`
	TraceURL string `key:"traceUrl"`

	Log   Log               `key:"log"`
	Grace quantity.Duration `key:"grace"`

	Hubs     []admin.HubRequest    `key:"hubs"`
	Policies []admin.PolicyRequest `key:"policies"`

	Topics        []admin.TopicRequest        `key:"topics"`
	Subscriptions []admin.SubscriptionRequest `key:"subscriptions"`

	Functions []admin.FunctionRequest `key:"functions"`
}

// Cluster says how a node has one of the yard's NATS servers inside.
type Cluster struct {
	Bundle      string        `key:"bundle"`
	Peers       string        `key:"peers"`
	Listen      string        `key:"listen"`
	ListenNodes string        `key:"listenNodes"`
	MaxStore    quantity.Size `key:"maxStore"`
	MaxMemory   quantity.Size `key:"maxMemory"`
}

// Secrets says where the key comes from that seals secrets in the data folder.
type Secrets struct {
	Key        string `key:"key"`
	KeyFile    string `key:"keyFile"`
	KeyCommand string `key:"keyCommand"`
}

// TLS says which certificates the listeners with TLS show and want.
type TLS struct {
	CertFile     string `key:"certFile"`
	KeyFile      string `key:"keyFile"`
	ClientCAFile string `key:"clientCaFile"`
}

// OIDC says whose bearer tokens are taken, and how people sign in by who makes them.
type OIDC struct {
	Issuer   string `key:"issuer"`
	Audience string `key:"audience"`
	ClientID string `key:"clientId"`
	Scope    string `key:"scope"`
}

// Quota is what the whole yard takes in a second.
type Quota struct {
	Events int           `key:"events"`
	Bytes  quantity.Size `key:"bytes"`
}

// Blob says who may use the blob endpoint.
type Blob struct {
	RootKeys string `key:"rootKeys"`
}

// OTLP says where spans go, and of how many traces.
type OTLP struct {
	Endpoint string `key:"endpoint"`
	Sample   string `key:"sample"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `key:"level"`
	Format string `key:"format"`
}

// Grid says how events are pushed to webhooks.
type Grid struct {
	Allow              string            `key:"allow"`
	Timeout            quantity.Duration `key:"timeout"`
	LateWindow         quantity.Duration `key:"lateWindow"`
	JitterPercent      int               `key:"jitterPercent"`
	ProbationAfter     int               `key:"probationAfter"`
	ProbationCap       quantity.Duration `key:"probationCap"`
	ValidationWindow   quantity.Duration `key:"validationWindow"`
	Origin             string            `key:"origin"`
	TopicRetention     quantity.Duration `key:"topicRetention"`
	DeadLetterDelay    quantity.Duration `key:"deadDelay"`
	DeadLetterGiveUp   quantity.Duration `key:"deadGiveUp"`
	DeadLetterKeep     quantity.Duration `key:"deadKeep"`
	DeadLetterFolders  string            `key:"deadFolders"`
	DeadLetterAccounts string            `key:"deadAccounts"`
}

// Off closes a listener.
const Off = "off"

// Default is the configuration without any file, variable or flag.
func Default() Config {
	var c Config
	for _, s := range settingsOf(&c) {
		if err := s.set(s.Default); err != nil {
			// The defaults are our own text; a test loads them.
			panic("config: default of " + s.Key + ": " + err.Error())
		}
	}
	return c
}

// Notify says who is told when a circuit opens, and how mail is sent.
type Notify struct {
	To       string            `key:"to"`
	LinkLife quantity.Duration `key:"linkLife"`
	SMTP     SMTP              `key:"smtp"`
}

// SMTP is the server that takes mail.
type SMTP struct {
	Addr     string `key:"addr"`
	From     string `key:"from"`
	Username string `key:"username"`
	Password string `key:"password"`
	TLS      string `key:"tls"`
	CAFile   string `key:"caFile"`
}

// Package config turns flags, environment and a file into one struct. The struct is
// the only description of the settings: its tags name the keys, give the defaults
// and carry the help, and flags, environment variables, the readers of both file
// formats and the printed reference are all derived from it.
//
// Flags win over the environment, the environment over the file, the file over the
// defaults. Nothing at all is a working configuration.
package config

// Config is every setting of a yard. A field's key tag is its name in the file;
// the flag and the variable follow from it (log.level: --log-level, EVENTYARD_LOG_LEVEL).
// Its value tag is the word that stands for the value in help.
type Config struct {
	Data   string `key:"data" value:"DIR" default:"eventyard-data" help:"Folder that holds the events and everything else that must survive. It is made on first start, for its owner only."`
	Engine string `key:"engine" value:"ENGINE" default:"disk" help:"What stores the events: disk. (A NATS cluster, nats://host:port, is not built yet.)"`

	Sync         string   `key:"sync" value:"MODE" default:"always" help:"When an event counts as stored. always: after it was synced to the disk, so that it survives a power cut. interval: synced at least every syncInterval. os: left to the operating system, so that it survives a crash of the yard but not of the machine."`
	SyncInterval Duration `key:"syncInterval" value:"DURATION" default:"1s" help:"The longest an event waits for its sync when sync is interval."`
	SegmentBytes Size     `key:"segmentBytes" value:"SIZE" default:"64MiB" help:"Size of a partition's files. Retention removes whole files."`

	AMQP  string `key:"amqp" value:"ADDR" default:"127.0.0.1:5672" help:"Address of the AMQP listener, which Event Hubs clients use, or off. Port 0 picks a free one. Beyond loopback it needs allowPlaintext."`
	AMQPS string `key:"amqps" value:"ADDR" default:"127.0.0.1:5671" help:"Address of the AMQP listener with TLS, or off."`
	HTTP  string `key:"http" value:"ADDR" default:"127.0.0.1:8080" help:"Address of the HTTP listener, or off; it also takes AMQP over WebSockets. Beyond loopback it needs allowPlaintext."`
	HTTPS string `key:"https" value:"ADDR" default:"127.0.0.1:8443" help:"Address of the HTTP listener with TLS, or off; it also takes AMQP over WebSockets."`
	Kafka string `key:"kafka" value:"ADDR" default:"off" help:"Address of the Kafka listener, or off. Not built yet: only off."`

	AllowPlaintext bool `key:"allowPlaintext" default:"false" help:"Lets the listeners without TLS listen beyond loopback. Events and tokens can then be read on the way: only for networks that are trusted."`
	AcceptAnyJWT   bool `key:"acceptAnyJwt" default:"false" help:"Takes every bearer token, whoever made it, with all rights: for the development of programs that use Azure Identity. Refused when any listener is beyond loopback."`

	Namespace string `key:"namespace" value:"NAME" default:"eventyard" help:"Name of the namespace that the hubs belong to, as clients see it."`
	Host      string `key:"host" value:"NAME" default:"" help:"Host name under which others reach this yard: it goes into the yard's own TLS certificate and into connection strings. Empty: the address of the listener, or this machine's name."`
	PublicURL string `key:"publicUrl" value:"URL" default:"" help:"URL under which others reach this yard, for links and for the endpoints of topics. Empty: the address of the HTTP listener."`

	TLS  TLS  `key:"tls"`
	OIDC OIDC `key:"oidc"`

	AMQPIdleTimeout    Duration `key:"amqpIdleTimeout" value:"DURATION" default:"60s" help:"How long an AMQP client may be silent before it counts as gone: 5s to 1h. Clients send a sign of life at half of it."`
	AMQPMaxConnections int      `key:"amqpMaxConnections" value:"NUMBER" default:"10000" help:"The most AMQP connections at once."`

	Grid   Grid   `key:"grid"`
	Notify Notify `key:"notify"`

	Log   Log      `key:"log"`
	Grace Duration `key:"grace" value:"DURATION" default:"8s" help:"How long a stopping yard lets requests finish before it cuts them off."`

	Hubs     []Hub    `key:"hubs" help:"Hubs that must exist. What is missing is created at start; nothing is ever deleted. Other hubs can be created at run time."`
	Policies []Policy `key:"policies" help:"Shared-access policies that must exist. What is missing is created at start, what differs is made as it stands here; nothing is ever deleted. Others can be created at run time."`

	Topics        []Topic        `key:"topics" help:"Topics that must exist. What is missing is created at start; nothing is ever deleted. Others can be created at run time."`
	Subscriptions []Subscription `key:"subscriptions" help:"Subscriptions that must exist. What is missing is created once the yard is up, what differs is made as it stands here; nothing is ever deleted. Others can be created at run time."`

	Functions []Function `key:"functions" help:"Functions that must exist. What is missing is created at start, what differs is made as it stands here; nothing is ever deleted. Others can be created at run time."`
}

// TLS says which certificates the listeners with TLS show and want.
type TLS struct {
	CertFile     string `key:"certFile" value:"FILE" default:"" help:"Certificate of the listeners with TLS, with its chain, as PEM; read again when it changes. Empty: the yard makes one of its own, signed by an authority of its own (eventyard cert export)."`
	KeyFile      string `key:"keyFile" value:"FILE" default:"" help:"Private key of tls.certFile, as PEM."`
	ClientCAFile string `key:"clientCaFile" value:"FILE" default:"" help:"Authorities of client certificates, as PEM. A client whose certificate they signed may use SASL EXTERNAL; its common name is a policy's. Empty: none is asked for."`
}

// OIDC says whose bearer tokens are taken.
type OIDC struct {
	Issuer   string `key:"issuer" value:"URL" default:"" help:"OpenID Connect issuer whose bearer tokens are taken besides shared-access signatures. Empty: none are."`
	Audience string `key:"audience" value:"TEXT" default:"" help:"What such a token has to be made for: its claim aud."`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `key:"level" value:"LEVEL" default:"info" help:"Least level that is logged: debug, info, warn or error."`
	Format string `key:"format" value:"FORM" default:"text" help:"Form of a log line: text or json."`
}

// Hub is a hub that must exist.
type Hub struct {
	Name       string     `key:"name" help:"Required."`
	Partitions int        `key:"partitions" help:"1 to 1024, 4 if not given. It cannot be changed later."`
	Retention  *Retention `key:"retention" help:"When events are removed; 7d if not given."`
	Groups     []string   `key:"groups" help:"Consumer groups that must exist besides $Default."`
}

// Retention says when a hub's events may be removed. What is not given is the
// broker's default; zero keeps for ever.
type Retention struct {
	Age   *Duration `key:"age" help:"Remove events older than this; 0 keeps them for ever. 7d if not given."`
	Bytes *Size     `key:"bytes" help:"Remove the oldest events of a partition while it holds more; 0 if not given: no limit."`
}

// Policy is a shared-access policy that must exist.
type Policy struct {
	Name         string   `key:"name" help:"Required."`
	Hub          string   `key:"hub" help:"The hub that it is for; the whole namespace if not given."`
	Rights       []string `key:"rights" help:"send, listen, manage; manage is all of them. Required."`
	PrimaryKey   string   `key:"primaryKey" help:"Made at first start if not given."`
	SecondaryKey string   `key:"secondaryKey" help:"Made at first start if not given."`
}

// Grid says how events are pushed to webhooks.
type Grid struct {
	Allow             string   `key:"allow" value:"CIDRS" default:"" help:"Networks that webhooks may be in although they are private, loopback or otherwise special, with commas between: 10.0.0.0/8,192.168.1.7/32. While every listener is on loopback this machine may be reached without being named here."`
	Timeout           Duration `key:"timeout" value:"DURATION" default:"30s" help:"How long a webhook's answer may take, where a subscription says nothing else."`
	LateWindow        Duration `key:"lateWindow" value:"DURATION" default:"3m" help:"How long after it began an unanswered request may still succeed and take its event out of the retries."`
	JitterPercent     int      `key:"jitterPercent" value:"PERCENT" default:"10" help:"By how much at most waits between attempts are lengthened at random."`
	ProbationAfter    int      `key:"probationAfter" value:"NUMBER" default:"10" help:"After so many failed deliveries in a row an endpoint is put on probation; 0: never."`
	ProbationCap      Duration `key:"probationCap" value:"DURATION" default:"3h" help:"The longest an endpoint on probation waits before it is tried again."`
	ValidationWindow  Duration `key:"validationWindow" value:"DURATION" default:"10m" help:"How long the link is good that agrees for an endpoint."`
	Origin            string   `key:"origin" value:"NAME" default:"eventgrid.azure.net" help:"Name by which CloudEvents endpoints are asked whether they agree (WebHook-Request-Origin). Receivers written for Azure allow the default."`
	TopicRetention    Duration `key:"topicRetention" value:"DURATION" default:"48h" help:"How long topics keep their events: at least the longest time to live and some hours."`
	DeadLetterDelay   Duration `key:"deadDelay" value:"DURATION" default:"5m" help:"How long dead letters are gathered before they are written to their place; 0: written at once."`
	DeadLetterGiveUp  Duration `key:"deadGiveUp" value:"DURATION" default:"4h" help:"After how long out of reach a place for dead letters is given up for what is gathered."`
	DeadLetterKeep    Duration `key:"deadKeep" value:"DURATION" default:"30d" help:"How long the yard keeps dead letters for listing and redriving."`
	DeadLetterFolders string   `key:"deadFolders" value:"DIRS" default:"" help:"Folders outside the data folder that dead letters may be written to, with commas between."`
}

// Topic is a topic that must exist.
type Topic struct {
	Name   string `key:"name" help:"Required."`
	Schema string `key:"schema" help:"eventgrid, cloudevents or custom; eventgrid if not given. It cannot be changed later."`
	Key1   string `key:"key1" help:"16 to 256 characters of ASCII, no blanks and no semicolon. Made at first start if not given."`
	Key2   string `key:"key2" help:"Likewise."`
}

// Subscription is a subscription that must exist, in the words of eventyard subscription create.
type Subscription struct {
	Name              string   `key:"name" help:"Required."`
	Topic             string   `key:"topic" help:"Where the events come from: a topic,"`
	SourceHub         string   `key:"sourceHub" help:"or a hub."`
	Endpoint          string   `key:"endpoint" help:"Where they go: a webhook's URL,"`
	Hub               string   `key:"hub" help:"or a hub,"`
	Pull              bool     `key:"pull" help:"or true: clients receive them."`
	Types             []string `key:"types" help:"Only events of these types."`
	SubjectBeginsWith string   `key:"subjectBeginsWith" help:"Only subjects that begin with this."`
	SubjectEndsWith   string   `key:"subjectEndsWith" help:"Only subjects that end with this."`
	Filters           []string `key:"filters" help:"Advanced filters, like data.k NumberGreaterThan 5."`
	Schema            string   `key:"schema" help:"eventgrid, cloudevents or custom; the topic's if not given."`
	MaxEvents         int      `key:"maxEvents" help:"Events in one request, 1 to 5000; 1 if not given."`
	PreferredKiB      int      `key:"preferredKib" help:"Preferred size of a request; 64 if not given."`
	Attempts          int      `key:"attempts" help:"1 to 30; 30 if not given."`
	TTL               string   `key:"ttl" help:"How long an event may be tried; 24h if not given."`
	RetrySchedule     string   `key:"retrySchedule" help:"Waits between attempts, like 1s,2s,5s."`
	RetryFloors       []string `key:"retryFloors" help:"Least waits by status, like 503=5s."`
	DeadLetter        string   `key:"deadLetter" help:"yard, folder:DIR, blob:URL or hub:NAME; dropped if not given."`
	Headers           []string `key:"headers" help:"Headers of each request, like X-Env=prod or X-Region={data.region}."`
	SigningKeys       []string `key:"signingKeys" help:"Keys that requests are signed with: whsec_… or whsk_…"`
	OrderBy           string   `key:"orderBy" help:"Deliver events with the same value of this path one after another."`
	Concurrency       int      `key:"concurrency" help:"Requests under way at once; 16 if not given."`
	SkipValidation    bool     `key:"skipValidation" help:"true: trust the endpoint without asking it."`
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
	To       string   `key:"to" value:"URLS" default:"" help:"Who is told when the circuit of any function opens, besides those that the function names: mailto:ops@example.com and webhooks' URLs, with commas between."`
	LinkLife Duration `key:"linkLife" value:"DURATION" default:"72h" help:"How long the link in a notice is good that resumes the function."`
	SMTP     SMTP     `key:"smtp"`
}

// SMTP is the server that takes mail.
type SMTP struct {
	Addr     string `key:"addr" value:"HOST:PORT" default:"" help:"Server that takes mail, such as smtp.example.com:587. Empty: no mail is sent."`
	From     string `key:"from" value:"ADDRESS" default:"" help:"Sender of the mail, such as eventyard@example.com."`
	Username string `key:"username" value:"NAME" default:"" help:"Name to log in with at the server. Empty: no login."`
	Password string `key:"password" value:"TEXT" default:"" help:"Password to log in with; better given as EVENTYARD_NOTIFY_SMTP_PASSWORD than on a command line."`
	TLS      string `key:"tls" value:"MODE" default:"starttls" help:"starttls (and nothing is sent without), tls from the first byte, or none, which takes no password."`
	CAFile   string `key:"caFile" value:"FILE" default:"" help:"Authorities to trust for the server's certificate, as PEM. Empty: the system's."`
}

// Function is a function that must exist, in the words of eventyard function create.
type Function struct {
	Name          string   `key:"name" help:"Required."`
	Hub           string   `key:"hub" help:"The hub whose events it gets. Required."`
	Group         string   `key:"group" help:"The consumer group that it reads as, made if it is missing; one of the function's name if not given."`
	Endpoint      string   `key:"endpoint" help:"The URL that is called. Required."`
	Format        string   `key:"format" help:"What is sent: cloudevents or eventhubs; cloudevents if not given."`
	Headers       []string `key:"headers" help:"Sent with every call, like Authorization: Bearer abc."`
	Batch         int      `key:"batch" help:"The most events of a call; 100 if not given."`
	MinBatch      int      `key:"minBatch" help:"So many are waited for, maxWait at most; 1 if not given."`
	MaxWait       string   `key:"maxWait" help:"How long minBatch is waited for; 1s if not given."`
	Lanes         int      `key:"lanes" help:"So many calls at once for each partition, events of one key in order; 1 if not given."`
	Start         string   `key:"start" help:"Where partitions without checkpoint begin: earliest, latest or a time; earliest if not given."`
	Timeout       string   `key:"timeout" help:"How long a call may take; 60s if not given."`
	Retries       string   `key:"retries" help:"Calls after the first, or forever; 5, doubling, if nothing is said of retries."`
	RetryDelay    string   `key:"retryDelay" help:"Before each retry; 250ms if not given."`
	RetryMaxDelay string   `key:"retryMaxDelay" help:"The longest wait with exponential; 1m if not given."`
	Exponential   bool     `key:"exponential" help:"true: the delay doubles each time. false is as if it were not given: for equal waits say retryDelay."`
	Poison        string   `key:"poison" help:"Where events go that used up their retries: a hub, topic:NAME or none; NAME-poison if not given."`
	Breaker       string   `key:"breaker" help:"More than so many failures in that time open the circuit, like 100/30s, or off; 100/30s if not given."`
	Probe         string   `key:"probe" help:"How long an open circuit waits before it tries an event; it waits for somebody to resume it if not given."`
	ProbeMax      string   `key:"probeMax" help:"The longest such wait, as it doubles each time; 5m if not given."`
	CountAttempts bool     `key:"countAttempts" help:"true: failed attempts count for the breaker."`
	Notify        []string `key:"notify" help:"Who is told when the circuit opens: mailto: and webhooks' URLs."`
	Target        int      `key:"target" help:"How many waiting events are worth one instance; batch if not given."`
}

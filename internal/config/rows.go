package config

// row describes a setting: what flags, variables, both file formats and the printed reference say
// of it.
type row struct {
	key string
	// value is the word that stands for the value in help; empty for a switch. usual is the
	// default.
	value, usual, help string
}

// rows are all settings, in the order of the struct.
var rows = []row{
	{"data", "DIR", "eventyard-data",
		"Folder that holds the events and everything else that must survive. It is made on first start, for its owner " +
			"only."},
	{"engine", "ENGINE", "disk",
		"What stores the events and everything else: disk, which is the data folder, or NATS servers with JetStream that " +
			"several nodes share, as nats://HOST:PORT,HOST:PORT (or tls://). Nodes are a preview: see docs/guides/cluster.md."},
	{"node", "NAME", "",
		"Name of this node among those of a yard on NATS servers. Empty: this machine's name."},
	{"yard", "NAME", "",
		"Name of the yard among others on the same NATS servers. Empty: eventyard, or what the engine's URL says."},
	{"replicas", "NUMBER", "0",
		"How many NATS servers keep each event: 1, 3 or 5. 0: 3, or what the engine's URL says; with a bundle, all peers."},
	{"hubStreams", "NUMBER", "0",
		"How many streams a hub that is created is spread over on NATS servers, 1 to 16, and no more than it has partitions. More " +
			"carry more events, and cost the servers more. 0: one for each 16 partitions."},
	{"streamBytes", "SIZE", "0",
		"How much each stream may hold on NATS servers, 1GiB or more; an eighth is kept free for what has to be stored before " +
			"anything can be removed. Events that would be more are refused until retention has made room. 0: as much as the servers have room for."},
	{"natsUnsafe", "", "false",
		"Starts on NATS servers that may lose what they acknowledge, since they sync late or are too old. Only for trying out."},
	{"cluster.bundle", "FILE", "",
		"Bundle of this peer, as eventyard cluster init has made it. The node then runs one of the yard's NATS servers " +
			"inside, which keeps what it has in the data folder, and takes its name, the other peers and the secret key from " +
			"the bundle. A preview: see docs/guides/cluster.md."},
	{"cluster.peers", "PEERS", "",
		"Peers that the bundle has to be of, as NAME=HOST:PORT with commas between. Empty: any, as the bundle names them."},
	{"cluster.listen", "ADDR", "",
		"Address at which the servers of other peers are listened to. Empty: the bundle's address of this peer, or all " +
			"IPv4 addresses of this machine where the bundle has a host name. All who connect have to show a certificate of the bundles."},
	{"cluster.listenNodes", "ADDR", "",
		"Address at which nodes without a server are let in, where cluster init has made bundles for some. Empty: the " +
			"bundle's host, or all IPv4 addresses, and a port 2000 below that for peers. They have to show a certificate of the bundles."},
	{"cluster.maxStore", "SIZE", "0",
		"How much the server inside keeps on disk; what would be more is refused. 0: what it has, and three quarters of what is " +
			"free when it starts."},
	{"cluster.maxMemory", "SIZE", "64MiB",
		"How much the server inside keeps in streams in memory. A yard makes none."},
	{"sync", "MODE", "always",
		"When an event counts as stored. always: after it was synced to the disk, so that it survives a power cut. " +
			"interval: synced at least every syncInterval. os: left to the operating system, so that it survives a crash " +
			"of the yard but not of the machine."},
	{"syncInterval", "DURATION", "1s",
		"The longest an event waits for its sync when sync is interval."},
	{"segmentBytes", "SIZE", "64MiB",
		"Size of a partition's files. Retention removes whole files."},
	{"amqp", "ADDR", "127.0.0.1:5672",
		"Address of the AMQP listener, which Event Hubs clients use, or off. Port 0 picks a free one. Beyond loopback " +
			"it needs allowPlaintext."},
	{"amqps", "ADDR", "127.0.0.1:5671",
		"Address of the AMQP listener with TLS, or off."},
	{"http", "ADDR", "127.0.0.1:8080",
		"Address of the HTTP listener, or off; it also takes AMQP over WebSockets. Beyond loopback it needs " +
			"allowPlaintext."},
	{"https", "ADDR", "127.0.0.1:8443",
		"Address of the HTTP listener with TLS, or off; it also takes AMQP over WebSockets."},
	{"kafka", "ADDR", "127.0.0.1:9092",
		"Address of the Kafka listener, which Kafka clients use, or off. Beyond loopback it needs allowPlaintext."},
	{"kafkas", "ADDR", "127.0.0.1:9093",
		"Address of the Kafka listener with TLS, or off."},
	{"devStorage", "ADDR", "off",
		"Address of a listener in the place of the official storage emulator, for storage clients with " +
			"UseDevelopmentStorage=true: 127.0.0.1:10000; or off. Everybody knows its key: it is refused when any listener is " +
			"beyond loopback."},
	{"kafkaAdvertise", "HOST:PORT", "",
		"Where clients of the Kafka listener are led: they ask for it, and go on with that address alone; where " +
			"several nodes share a yard each needs its own. Empty: the host, for clients from elsewhere, or the address that a client " +
			"has connected to; with several nodes the host, the address of the listener, or the machine's name."},
	{"kafkasAdvertise", "HOST:PORT", "",
		"The same for the Kafka listener with TLS. Empty: the name that a client has asked for, " +
			"unless there are several nodes, then as without TLS."},
	{"kafkaBrokers", "MODE", BrokersAll,
		"Which brokers Kafka clients hear of where several nodes share a yard. all: each node, by what it advertises, so that " +
			"clients turn to all of them, and to the others when one is gone; nodes that advertise one address count as one. one: a single " +
			"broker, for nodes that clients reach only through a TCP balancer."},
	{"kafkaAutoCreate", "", "false",
		"Lets Kafka clients with Manage on the namespace create a topic by naming it, with four partitions, as all do while every " +
			"listener is on loopback."},
	{"allowPlaintext", "", "false",
		"Lets the listeners without TLS listen beyond loopback. Events and tokens can then be read on the way: only " +
			"for networks that are trusted."},
	{"acceptAnyJwt", "", "false",
		"Accepts every bearer token, from any issuer, with all rights: for the development of programs that use Azure " +
			"Identity. Refused when any listener is beyond loopback."},
	{"namespace", "NAME", "eventyard",
		"Name of the namespace that the hubs belong to, as clients see it."},
	{"host", "NAME", "",
		"Host name under which others reach this yard: it goes into the yard's own TLS certificate and into " +
			"connection strings, and Kafka clients are led to it. Empty: the address of the listener, or this machine's name."},
	{"publicUrl", "URL", "",
		"URL under which others reach this yard, such as that of a proxy that ends TLS: for links, for the endpoints of topics " +
			"and for the console's way back from an issuer. Empty: the address of the HTTP listener."},
	{"secrets.key", "TEXT", "",
		"Secret key that seals access keys, signing keys, headers and the like in the data folder: 32 random bytes as " +
			"base64, or several lines of them, the newest first; better given as EVENTYARD_SECRETS_KEY than on a command line."},
	{"secrets.keyFile", "FILE", "",
		"File that holds the secret key. Empty: secret.key in the data folder, which is made; a backup without it " +
			"shows nobody a secret."},
	{"secrets.keyCommand", "COMMAND", "",
		"Command of the shell that prints the secret key, such as one of a key-management service."},
	{"tls.certFile", "FILE", "",
		"Certificate of the listeners with TLS, with its chain, as PEM; read again when it changes. Empty: the yard " +
			"makes one of its own, signed by an authority of its own (eventyard cert export)."},
	{"tls.keyFile", "FILE", "",
		"Private key of tls.certFile, as PEM."},
	{"tls.clientCaFile", "FILE", "",
		"Authorities of client certificates, as PEM. A client whose certificate they signed may use SASL EXTERNAL; " +
			"its common name is a policy's. Empty: none is asked for."},
	{"oidc.issuer", "URL", "",
		"OpenID Connect issuer whose bearer tokens are taken besides shared-access signatures. Empty: none are."},
	{"oidc.audience", "TEXT", "",
		"What such a token has to be made for: its claim aud."},
	{"oidc.clientId", "TEXT", "",
		"What the issuer knows the yard's console as, a public client with PKCE; people sign in there by the issuer. " +
			"It sends them back to /console/signin/callback. Empty: they sign in with keys alone."},
	{"oidc.scope", "TEXT", "",
		"What is asked for besides openid when somebody signs in, with blanks between, so that the token is one for " +
			"oidc.audience."},
	{"blob.rootKeys", "MODE", "auto",
		"Whether the keys of the root policy open the blobs of this yard, besides the blob account's own: on or off. " +
			"auto: as eventyard blob root-keys has left it; on at first in a yard from before the account had keys of its " +
			"own, off in others."},
	{"amqpIdleTimeout", "DURATION", "60s",
		"How long an AMQP client may be silent before it counts as gone: 5s to 1h. Clients send a sign of life at " +
			"half of it."},
	{"amqpMaxConnections", "NUMBER", "10000",
		"The most AMQP connections of clients at once. Connections that have shown no token are bounded apart."},
	{"httpMaxConnections", "NUMBER", "10000",
		"The most HTTP connections of clients at once, bounded likewise."},
	{"kafkaMaxConnections", "NUMBER", "10000",
		"The most Kafka connections of clients at once, bounded likewise. Of all three there are fewer where the limit of " +
			"open files does not allow so many."},
	{"quota.events", "NUMBER", "50000000",
		"Events a second that may be published to all hubs and topics together; 0: no limit. Hubs, topics and policies " +
			"can have quotas of their own."},
	{"quota.bytes", "SIZE", "32GiB",
		"Bytes a second that may be published to all of them; 0: no limit."},
	{"grid.allow", "CIDRS", "",
		"Networks that webhooks may be in although they are private, loopback or otherwise special, with commas " +
			"between: 10.0.0.0/8,192.168.1.7/32. While every listener is on loopback this machine may be reached without " +
			"being named here."},
	{"grid.timeout", "DURATION", "30s",
		"How long a webhook's answer may take, where a subscription says nothing else."},
	{"grid.lateWindow", "DURATION", "3m",
		"How long after it began an unanswered request may still succeed and take its event out of the retries."},
	{"grid.jitterPercent", "PERCENT", "10",
		"By how much at most waits between attempts are lengthened at random."},
	{"grid.probationAfter", "NUMBER", "10",
		"After so many failed deliveries in a row an endpoint is put on probation; 0: never."},
	{"grid.probationCap", "DURATION", "3h",
		"The longest an endpoint on probation waits before it is tried again."},
	{"grid.validationWindow", "DURATION", "10m",
		"How long the link is valid that agrees for an endpoint."},
	{"grid.origin", "NAME", "eventgrid.azure.net",
		"Name by which CloudEvents endpoints are asked whether they agree (WebHook-Request-Origin). Receivers written " +
			"for Azure allow the default."},
	{"grid.topicRetention", "DURATION", "48h",
		"How long topics keep their events: at least the longest time to live and some hours."},
	{"grid.deadDelay", "DURATION", "5m",
		"How long dead letters are gathered before they are written to their target; 0: written at once."},
	{"grid.deadGiveUp", "DURATION", "4h",
		"How long a target of dead letters may be out of reach before the gathered ones are dropped."},
	{"grid.deadKeep", "DURATION", "30d",
		"How long the yard keeps dead letters for listing and redriving."},
	{"grid.deadFolders", "DIRS", "",
		"Folders outside the data folder that dead letters may be written to, with commas between."},
	{"grid.deadAccounts", "TEXTS", "",
		"Connection strings of storage accounts that dead letters may be written to by the account's name or resource " +
			"id, with commas between; better given as EVENTYARD_GRID_DEAD_ACCOUNTS than on a command line. The yard's own " +
			"account need not be here."},
	{"notify.to", "URLS", "",
		"Who is notified when the circuit of any function opens, besides those that the function names: " +
			"mailto:ops@example.com and webhooks' URLs, with commas between."},
	{"notify.linkLife", "DURATION", "72h",
		"How long the link in a notice is valid that resumes the function."},
	{"notify.smtp.addr", "HOST:PORT", "",
		"Server that takes mail, such as smtp.example.com:587. Empty: no mail is sent."},
	{"notify.smtp.from", "ADDRESS", "",
		"Sender of the mail, such as eventyard@example.com."},
	{"notify.smtp.username", "NAME", "",
		"Name to log in with at the server. Empty: no login."},
	{"notify.smtp.password", "TEXT", "",
		"Password to log in with; better given as EVENTYARD_NOTIFY_SMTP_PASSWORD than on a command line."},
	{"notify.smtp.tls", "MODE", "starttls",
		"starttls (and nothing is sent without), tls from the first byte, or none, which takes no password."},
	{"notify.smtp.caFile", "FILE", "",
		"Authorities to trust for the server's certificate, as PEM. Empty: the system's."},
	{"otlp.endpoint", "URL", "",
		"URL of the OpenTelemetry collector that gets spans of what is done with events, by OTLP over HTTP, such as " +
			"http://localhost:4318. Empty: what OTEL_EXPORTER_OTLP_ENDPOINT says; where that says nothing either, no spans " +
			"are made. The other OTEL_ variables count as well. Traces are carried with events in any case."},
	{"otlp.sample", "RATIO", "",
		"How many of the traces that begin in this yard are kept, from 0 to 1, such as 0.05. Those that began elsewhere " +
			"are kept if they are there. Empty: what OTEL_TRACES_SAMPLER says, or all."},
	{"traceUrl", "URL", "",
		"Where people look at a trace, with {trace} for its id, such as https://jaeger.example.com/trace/{trace}: the " +
			"journey of an event links to it. Empty: it shows the id alone."},
	{"log.level", "LEVEL", "info",
		"Least level that is logged: debug, info, warn or error."},
	{"log.format", "FORM", "text",
		"Form of a log line: text or json."},
	{"grace", "DURATION", "8s",
		"How long a stopping yard lets requests finish before it cuts them off."},
}

// lists are the definitions that a file may declare.
var lists = []row{
	{key: "hubs", help: "Hubs that must exist. What is missing is created at start; nothing is ever deleted. Other hubs can be " +
		"created at run time."},
	{key: "policies", help: "Shared-access policies that must exist. What is missing is created at start, what differs is made as it " +
		"stands here; nothing is ever deleted. Others can be created at run time."},
	{key: "topics", help: "Topics that must exist. What is missing is created at start; nothing is ever deleted. Others can be created " +
		"at run time."},
	{key: "subscriptions", help: "Subscriptions that must exist. What is missing is created once the yard is up, what differs is made as it " +
		"stands here; nothing is ever deleted. Others can be created at run time."},
	{key: "functions", help: "Functions that must exist. What is missing is created at start, what differs is made as it stands here; " +
		"nothing is ever deleted. Others can be created at run time."},
}

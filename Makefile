# Each target is a line that a person could type. `make` alone lists them.
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 30s
CRASHSEEDS ?= 100000
SIMSEEDS ?= 5000
CELLSEED ?= 1
CHAOSTIME ?= 1h
CHAOSSEED ?= 0
BROWSERTIME ?= 1h
INTEROP ?= .
# What runs without the race detector in make test: simulations of many seeds, and tests that drive processes of
# the yard, which have none themselves. make race runs them with it.
UNRACED := test/sim test/sim/nodes test/bench test/bench/peers test/crash test/soak
# What has tests with storage in bubbles of testing/synctest, which servers cannot be in: make test runs them on the
# model of the engine of several nodes, too.
MODELLED := admin hub internal/amqp/eventhubs internal/api/eventgrid internal/api/v1 internal/functions/local internal/functions/notify internal/functions/poison/box internal/functions/runner internal/grid/deadletter internal/grid/delivery internal/grid/forward internal/grid/handshake internal/grid/retrylog internal/grid/topics internal/hubs/access internal/hubs/broker internal/hubs/groups internal/kafka/groups internal/kafka/handler internal/kafka/transactions internal/setaside
INTEROPCLUSTER ?= ^Test(GoSDK|Python|Proton|Java|Shared|Grid|HTTPFunctions|ResumeInBrowser|Vanished|Frozen|Scale|NodesAgree|Kafka)
INTEROPCLUSTERFULL ?= ^TestKafka
SUITES ?= ./internal/storage/jetstream/entries ./internal/storage/jetstream/logs ./internal/hubs/... ./internal/setaside/... ./internal/grid/... ./internal/functions/... ./internal/amqp/... ./internal/kafka/... ./internal/api/... ./hub ./processor ./functions ./admin ./server ./servertest
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
VULNDB ?= https://vuln.go.dev

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

.PHONY: run
run: build ## Start the yard on its embedded default (data in ./eventyard-data)
	./bin/eventyard serve

.PHONY: build
build: ## Build bin/eventyard
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/eventyard ./cmd/eventyard

.PHONY: test
test: ## Everything: vet, format, all tests (with the race detector, but for simulations and what drives processes), power cuts, kill -9, packages, traces by the Collector, a yard of three nodes, foreign clients
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go vet ./...
	go vet -tags noconsole ./server ./cmd/eventyard
	go test -race -timeout 20m $$(go list ./... | grep -v -e test/interop $(UNRACED:%=-e '/%$$'))
	go test -timeout 20m $(UNRACED:%=./%)
	go test ./server ./internal/storage -run Peer
	EVENTYARD_TEST_ENGINE=model go test $(MODELLED:%=./%)
	go test ./internal/storage/jetstream/logs -run TestFaults -storm.seeds 20
	$(MAKE) packaging
	$(MAKE) collector
	$(MAKE) cluster
	$(MAKE) interop

.PHONY: packaging
packaging: ## What people install, as far as this machine goes: a release for Linux (amd64) twice, deb, rpm and image on roots of their own if this is root, all linters; CI=true insists on all (two minutes)
	cd packaging && go vet ./...
	cd packaging && go test -count=1 -timeout 20m ./...

.PHONY: collector
collector: ## Traces from end to end once more, by way of the receiver of OpenTelemetry's own Collector
	cd test/collector && go vet ./... && go build -o ../../bin/collector .
	go test -count=1 ./test/traces -collector '$(CURDIR)/bin/collector'

.PHONY: test-nats
test-nats: ## The conformance of the engine of several nodes, and the tests of services on it, over three NATS servers (SUITES='./hub ./admin' for some)
	go test ./test/suites -count=1 -v -timeout 60m -suites -suites.packages '$(SUITES)'

.PHONY: interop
interop: ## Real foreign clients against a real yard (INTEROP=TestPython for one part); CI=true insists on all
	go test -race -v -count=1 -parallel 4 -timeout 25m -run '$(INTEROP)' ./test/interop

.PHONY: interop-full
interop-full: ## interop, Kafka Streams with exactly_once_v2, Kafka Connect, and the test suites of azure-eventhub for Python, of franz-go and of librdkafka, unmodified (half an hour more)
	go test -race -v -count=1 -parallel 4 -timeout 75m -run '$(INTEROP)' ./test/interop -full

.PHONY: interop-cluster
interop-cluster: ## The clients in Go, Python, JavaScript and Java, and receivers of webhooks, against three nodes on three NATS servers, two of them behind a TCP balancer
	INTEROP_YARD=cluster go test -v -count=1 -parallel 2 -timeout 90m -run '$(INTEROPCLUSTER)' ./test/interop

.PHONY: interop-cluster-full
interop-cluster-full: ## What Kafka clients do of interop-full, against three nodes, which are killed in turn: the suites of franz-go and of librdkafka, Kafka Streams, Kafka Connect, histories of six seeds (an hour or two)
	INTEROP_YARD=cluster go test -v -count=1 -parallel 2 -timeout 180m -run '$(INTEROPCLUSTERFULL)' ./test/interop -full

.PHONY: browser
browser: ## The console in a real browser, beyond what make test has: all pages in light and dark, at a desk and on a phone; extremes; under load; 100 open pages; what moves while pages load; the demo at its full size; tabs open for BROWSERTIME (1h). Its figures are in docs/benchmarks.md
	go test -v -count=1 -timeout 24h ./test/console -browser.all -browser.memory $(BROWSERTIME) -artifacts

.PHONY: minutes
minutes: ## By the clock of a machine that does nothing else: by what README tells to type, from a clone to a first event within a minute, and to the demo within two, whose first home is there within ten seconds; MINUTESFLAGS=-minutes.cold with an empty build cache, judging nothing
	go test ./cmd/eventyard -run TestMinutesFromAClone -count=1 -v -timeout 30m -minutes $(MINUTESFLAGS)

.PHONY: quick
quick: ## The tests without the race detector and with few seeds, for the inner loop
	go test $$(go list ./... | grep -v -e storage/disk -e test/interop)
	go test ./internal/storage/disk -crash.seeds=200

.PHONY: race
race: ## All tests but the foreign clients' with the race detector, three times
	go test -race -count=3 -timeout 60m $$(go list ./... | grep -v test/interop)

.PHONY: crash
crash: ## A long run of power cuts (CRASHSEEDS=100000) and kill -9
	go test ./internal/storage/disk -run TestPowerCuts -crash.seeds=$(CRASHSEEDS) -timeout 24h
	go test ./test/crash -kill.rounds=200 -timeout 24h

.PHONY: cluster
cluster: ## A yard of three nodes, all processes, through a fixed row of faults: on three NATS servers, and with servers inside; and backed up under kill -9 (nine minutes)
	go test ./test/cluster -run 'NothingAcknowledged|PeersLoseNothing|KillNine' -count=1 -cluster -timeout 30m -v

.PHONY: chaos
chaos: ## Random faults, full disks among them, for CHAOSTIME (1h) in all: of a yard of three nodes on three NATS servers, on five, and with servers inside; full disks take root (CHAOSSEED=7 for a known run, CHAOSFAULTS='full disk|disk full' for some kinds)
	go test ./test/cluster -run Chaos -count=1 -chaos=$(CHAOSTIME) -seed=$(CHAOSSEED) -faults='$(CHAOSFAULTS)' -timeout 24h -v

.PHONY: sim
sim: ## Simulated hours of the processor library, and of a yard of three nodes, with faults (SIMSEEDS=5000), beyond what test runs
	go test ./test/sim -run TestSimulatedHours -sim.first=1000 -sim.seeds=$(SIMSEEDS) -sim.time=1h -timeout 24h
	go test ./test/sim/nodes -run TestSimulatedHours -sim.first=1000 -sim.seeds=$(SIMSEEDS) -sim.time=1h -timeout 24h

.PHONY: cells
cells: ## The simulation of many cells at full size: the figures of docs/internals/scale.md (CELLSEED=1)
	go test ./test/sim/cells -count=1 -v -cells.large -cells.seed=$(CELLSEED) -timeout 2h

.PHONY: soak
soak: ## What takes long or needs root: a full disk (ext4 and tmpfs of its own), growth by partitions and subscriptions (-soak.partitions, -soak.subscriptions: 1,000 to 100,000; rows begin with "growth |"), and an hour of hostile clients. It says what this machine refuses
	go test ./test/soak -soak -count=1 -v -timeout 3h

.PHONY: dist
dist: ## What people install, into dist/: archives, deb, rpm, container image, Helm chart, Homebrew formula, checksums
	rm -rf dist
	cd packaging && go run ./dist -source .. -out ../dist

.PHONY: dist-test
dist-test: ## All of that twice to the same bytes; deb, rpm and image on roots of their own, which needs root; chart, unit, formula, completions, alerts and dashboard by their own linters (half an hour); CI=true insists on all, DISTFLAGS=-cold compiles all twice
	cd packaging && go vet ./...
	cd packaging && go test -count=1 -timeout 30m ./lint
	cd packaging && go test -count=1 -v -timeout 90m ./dist -all $(DISTFLAGS)

.PHONY: generate
generate: ## Write what follows from other files: definitions of package server, OpenAPI, references
	go test ./internal/api/spec -count=1 -run UpToDate -update
	go test ./internal/api/frame ./internal/amqp/eventhubs ./internal/kafka/handler -count=1 -run UpToDate -update
	go test ./internal/api/v1 -count=1 -run UpToDate -update
	go test ./server -count=1 -run UpToDate -update
	go test ./cmd/eventyard -count=1 -run UpToDate -update

.PHONY: fuzz
fuzz: ## Fuzz each decoder for FUZZTIME (30s)
	@for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done

.PHONY: bench
bench: ## Measure, beside raw writing and NATS JetStream, and write docs/benchmarks.md
	go run ./test/bench -write docs/benchmarks.md

.PHONY: bench-cluster
bench-cluster: ## Measure a yard of several nodes beside plain JetStream on the same servers, and write docs/benchmarks.md (ten minutes)
	go run ./test/bench -cluster -seconds 1 -rounds 7 -write docs/benchmarks.md

.PHONY: peers
peers: ## Race the yard against Apache Kafka, Artemis, RabbitMQ, NATS and Redis on this machine, and write docs/benchmarks.md (25 minutes; as root with CI=true what Debian packages is installed)
	go run ./test/bench/peers -write docs/benchmarks.md

.PHONY: lint
lint: ## vet, gofmt, staticcheck and, where its database (VULNDB) can be reached, govulncheck
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	@if curl -fsS -m 30 -o /dev/null $(VULNDB)/index/db.json; then \
	  echo "go run $(GOVULNCHECK) ./..."; go run $(GOVULNCHECK) -db $(VULNDB) ./...; \
	else \
	  echo "govulncheck was not run: its database $(VULNDB) cannot be reached from here"; \
	fi

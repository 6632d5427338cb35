# Everything that the project does for itself. `make help` lists the targets.

GO            ?= go
GOLANGCI_LINT := bin/golangci-lint
GOLANGCI_VERSION := v2.15.0
ARCHES        := amd64 arm64
AGENTS        := $(ARCHES:%=hosts/agents/built/ngxlab-agent-linux-%)
SOURCES       := $(shell find . -name '*.go' -not -path './hosts/agents/built/*') go.mod go.sum $(shell find experiments templates store -type f)
VERSION       := $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
FUZZTIME      ?= 10s
N             ?= 50
BENCHED        = $(sort $(dir $(shell grep -rl --include='*_test.go' '^func Benchmark' .)))
# A Docker engine for the tests: one that is there (its packages may have other names), else Debian's.
DOCKER        := [ -n "$$DOCKER_HOST" ] || [ -S /var/run/docker.sock ] || command -v dockerd >/dev/null || scripts/need docker.io

.PHONY: help build demo test chaos lint bench fuzz cover clean
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

build: bin/ngxlab ## build bin/ngxlab with its agents inside

bin/ngxlab: $(SOURCES) $(AGENTS)
	@scripts/need gcc libc6-dev
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $@ ./cmd/ngxlab

# Static, trimmed and compressed: the same sources give the same bytes.
hosts/agents/built/ngxlab-agent-linux-%: $(SOURCES)
	CGO_ENABLED=0 GOOS=linux GOARCH=$* $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o $@.raw ./cmd/ngxlab-agent
	sha256sum < $@.raw | cut -d ' ' -f 1 > $@.sha256
	gzip -9 -n < $@.raw > $@
	rm $@.raw

demo: ## run the quickstart study on this machine and write its report to out/demo
	@scripts/demo

test: ## install what the tests need and run them all
	@scripts/need gcc libc6-dev make patch wrk apache2-utils libpcre2-dev zlib1g-dev iproute2 procps libssl-dev nghttp2-client xz-utils openssh-server sudo debootstrap curl zsh fish tcsh
	@$(DOCKER)
	scripts/with-docker $(GO) test -race -timeout 30m ./...

chaos: ## kill N (50) campaigns at random moments; every host must come back as it was
	@scripts/need gcc libc6-dev make patch wrk apache2-utils libpcre2-dev zlib1g-dev openssh-server debootstrap curl
	@$(DOCKER)
	scripts/with-docker $(GO) test -race -v -timeout 48h -run TestKilledCampaigns ./cmd/ngxlab -args -chaos.n $(N)

lint: $(GOLANGCI_LINT) ## gofmt, go vet (also of the agent for arm64 without cgo), golangci-lint
	@scripts/need gcc libc6-dev
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these files"; exit 1; }
	$(GO) vet ./...
	CGO_ENABLED=0 GOARCH=arm64 $(GO) vet ./agent/... ./cmd/ngxlab-agent
	$(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

bench: $(AGENTS) ## measure the budgets of the design, as ratios within one run where they are ratios
	@scripts/need gcc libc6-dev make patch wrk apache2-utils libpcre2-dev zlib1g-dev procps openssh-server sudo debootstrap curl ansible python3
	@$(DOCKER)
	scripts/with-docker $(GO) test -run '^$$' -bench . -benchtime 1x -timeout 60m $(BENCHED)

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@scripts/fuzz $(FUZZTIME)

cover: ## coverage of the tests per package
	$(GO) test -timeout 30m -cover ./...

clean: ## remove what the targets made
	rm -rf bin/ngxlab out coverage.* hosts/agents/built/ngxlab-agent-*

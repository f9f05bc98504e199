# A target builds the program that it calls: bin/lab for learners, bin/classroom for teachers, bin/labdev for authors.

SHELL := /bin/bash
.DEFAULT_GOAL := help
export CGO_ENABLED := 0
# A go.work of another project may be in a folder above the checkout.
export GOWORK := off
# With these, exported for other work, Go would build for another machine, or not at all.
unexport GOOS GOARCH GOEXPERIMENT GO111MODULE GOROOT

# Settings become flags. A value is passed on as it is: make does not expand it, and the shell takes it from the environment.
override SETTINGS := ADDRESS ALL CHECK CLUSTER DIR FORCE FORMAT KEEP KEY LAB LABS N NAME NODE_IMAGE ONLY PORT REFUSE \
  ROOM RUNTIME SAVE SEED WORKSPACE YES
$(foreach s,$(SETTINGS),$(if $(filter-out undefined,$(origin $s)),$(eval export override $s := $$(value $s))))
# $(call flag,--seed,SEED) is nothing without a SEED.
override flag = $${$2:+$1 "$$$2"}
override FLAGS := $${CLUSTER+--cluster "$$CLUSTER"} $(call flag,--node-image,NODE_IMAGE) $(if $(filter 1,$(YES)),--yes)
override lab := @bin/lab $(FLAGS) $${WORKSPACE+--workspace "$$WORKSPACE"}
override classroom := @bin/classroom $(FLAGS)
override labdev := @bin/labdev $(FLAGS)
# The N of a target's name.
lab-% lesson-% watch-% hint-% trace-% diff-% solve-% reset-% cka-% solution-%: export override STEP = $*

override simple := progress cka envtest image demo up shell status doctor setup watch lesson hint diff
override develop := node-image test generate
override teach := classroom-modules judge-image
.PHONY: $(simple) $(develop) $(teach) proof verify lab labs trace undo join registry down board classroom grade mutants bench \
  lint vulncheck help bin/lab bin/labdev bin/classroom
$(simple): bin/lab
	$(lab) $@
$(develop): bin/labdev
	$(labdev) $@
$(teach): bin/classroom
	$(classroom) $(@:classroom-%=%)

##@ Learn

# Without a number, lab, lesson, hint, trace and diff are about the lab of the last verdict.
lab: bin/lab
	$(lab) check $(if $(filter 1,$(KEEP)),--keep) $(call flag,--seed,SEED) $(call flag,--format,FORMAT)
trace: bin/lab
	$(lab) trace $(call flag,--check,CHECK)
lab-%: bin/lab ## judge lab N of your operator on a fresh cluster (0 is a quiz, without code)
	$(lab) check "$$STEP" $(if $(filter 1,$(KEEP)),--keep) $(call flag,--seed,SEED) $(call flag,--format,FORMAT)
lesson-%: bin/lab ## the lesson of lab N, to read in this terminal
	$(lab) lesson "$$STEP"
labs: bin/lab ## judge every lab up to the first that you have not passed
	$(lab) check all $(if $(filter 1,$(KEEP)),--keep) $(call flag,--format,FORMAT)
watch: ## judge again on every save, from the first lab that you have not passed
watch-%: bin/lab ## the same for lab N
	$(lab) watch "$$STEP"
hint-%: bin/lab ## the next hint for what failed last in lab N
	$(lab) hint "$$STEP"
trace-%: bin/lab ## who did what when, in the last run of lab N (CHECK=id for another check)
	$(lab) trace "$$STEP" $(call flag,--check,CHECK)
diff-%: bin/lab ## after lab N passed: where our solution does it differently
	$(lab) diff "$$STEP"
solve-%: bin/lab ## save your work, then write the solution of lab N into the workspace
	$(lab) solve "$$STEP"
reset-%: bin/lab ## save your work, then write the starter of lab N into the workspace
	$(lab) reset "$$STEP"
undo: bin/lab ## bring back what the last solve, reset or undo replaced (SAVE=n: save n of .lab/saves)
	$(lab) undo $(call flag,--,SAVE)
join: bin/lab ## join a classroom: your verdicts go to its board (ROOM=address KEY=key NAME=you)
	$(lab) join -- "$$ROOM" "$$KEY" "$$NAME"
envtest: ## kube-apiserver and etcd for `make test` in your workspace
image: ## an image of your operator on the nodes of the cluster to play with, for `make deploy` in your workspace
progress: ## which labs passed, and when

##@ Practise for the CKA

cka: ## the tasks, which you have done, and how much of the exam's curriculum they touch
cka-%: bin/lab ## task N with kubectl on a fresh cluster; each later call judges (hint-cka-N, reset-cka-N)
	$(lab) cka "$$STEP" $(call flag,--seed,SEED)
solution-%: bin/lab ## after a task passed: two ways to do it, make solution-cka-N (FORCE=1: before, too)
	$(lab) solution "$$STEP" $(if $(filter 1,$(FORCE)),--yes)

##@ Look around

demo: ## the finished operator at work, in two minutes
up: ## a cluster to play with
shell: ## a shell whose kubectl talks to that cluster
registry: bin/lab ## a registry of caches to try lab 10 with, until Ctrl-C (PORT=n REFUSE=1)
	$(lab) registry $(call flag,--port,PORT) $(if $(filter 1,$(REFUSE)),--refuse)
status: ## what is still running
down: bin/lab ## remove everything that is still running (ALL=1: what other commands and learners use, too)
	$(lab) down $(if $(filter 1,$(ALL)),--all)

##@ Teach

board: bin/classroom ## who is where, and who is stuck: the classroom's server, until Ctrl-C (ADDRESS=ip PORT=n)
	$(classroom) serve $(call flag,--address,ADDRESS) $(call flag,--port,PORT)
classroom: bin/classroom ## a cluster for each of N learners; again: those that are missing (N=12 ADDRESS=ip; make down ALL=1 removes them)
	$(classroom) up $(call flag,--learners,N) $(call flag,--address,ADDRESS)
classroom-modules: ## collect what a classroom on a weak network needs, where the internet is good
grade: bin/classroom ## judge what many learners handed in, each in a container (DIR=folder LABS=4,5; RUNTIME=runc takes another runtime than gVisor)
	$(classroom) grade $(call flag,--labs,LABS) $(call flag,--runtime,RUNTIME) -- "$$DIR"
judge-image: ## make the image for verdicts on a Kubernetes that you have (docs/hosted.md)

##@ Prepare the machine

doctor: ## what on this machine would stop a lab, and the command that fixes it
setup: ## install what the doctor found missing: container engine, kernel settings, node image
node-image: ## build the node image from Debian packages and Go modules

##@ Work on the project

test: ## what every change has to pass: unit tests, then right and wrong answers on real clusters
proof: lint verify bin/labdev ## all tests and all answers, in two hours (Linux, root); ends with a table for docs/testing.md
	$(labdev) test --all
mutants: bin/labdev ## judge wrong and right answers: those of make test, or with LAB=n ALL=1 ONLY=id others
	$(labdev) mutants $(if $(filter 1,$(ALL)),--all) $(call flag,--lab,LAB) $(call flag,--only,ONLY)
bench: ## how long a cluster and a verdict take, for benchstat (ONLY=Cluster or Verdict/lab=4, N=5)
	@go test ./labs/internal/proof/benchmark -run none -bench "$${ONLY:-.}" -benchtime 1x -count "$${N:-5}" -timeout 3h
# $(call modules,DIRS) are the folders of go.mod files that are not below DIRS.
modules = $(foreach file,$(shell git ls-files '*go.mod' | grep -Ev '^($1)/'),$(or $(patsubst %/,%,$(filter-out ./,$(dir $(file)))),.))
verify: bin/labdev ## is everything up to date: generated code, lessons, stages, go.mod files, formatting, platforms
	$(labdev) verify
	@test -z "$$(gofmt -l clusters labs operator | tee /dev/stderr)" || { echo "gofmt would change these files" >&2; exit 1; }
	@for dir in $(call modules,labs/correct); do go -C $$dir mod tidy -diff || exit; done
	@bare=$$(mktemp -d) && touch $$bare/go.mod && for sum in $(abspath $(wildcard clusters/components/modules/*.sum)); do \
	  go -C $$bare mod tidy -diff -modfile=$${sum%sum}mod || exit; done && rm -r $$bare
	@for os in linux darwin; do echo "compiling for $$os/arm64"; export GOOS=$$os GOARCH=arm64; \
	  go -C clusters build ./... && go -C operator build ./... && go build ./labs/cmd/... ./labs/classroom/cmd/... ./labs/harness/... || exit; done
generate: ## regenerate what verify compares

lint: ## static analysis of Go and shell
	@go -C scripts/tools build -o ../../bin/golangci-lint ./golangci-lint
	@command -v shellcheck >/dev/null || { echo "shellcheck is missing: apt-get install shellcheck" >&2; exit 3; }
	@shellcheck scripts/*.sh .ci/run
	@root=$$(pwd); for dir in $(call modules,scripts|labs/correct); do (cd $$dir && "$$root/bin/golangci-lint" run ./...) || exit; done
vulncheck: ## known vulnerabilities of the modules in our programs and in a node (asks https://vuln.go.dev)
	@scripts/vulncheck.sh

bin/lab bin/labdev bin/classroom: # the Go build cache decides whether there is anything to do
	@[ -n "$$HOME" ] || { echo "HOME is not set, and Go keeps there what it downloads: export HOME=FOLDER" >&2; exit 3; }
	@command -v go >/dev/null || { echo "Go is missing: install the version that go.mod names from your distribution or https://go.dev/dl" >&2; exit 3; }
	@[ -e $@ ] || echo "… compiling $@, once: two minutes on two cores. Meanwhile read labs/01-types/README.md" >&2
	@go build -o $@ ./labs/$(if $(filter bin/classroom,$@),classroom/)cmd/$(notdir $@)

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z%-]+:.*## / {sub(/%/, "N", $$1); line = sprintf("  make %-18s", $$1); n = split($$2, words, " "); \
	    for (i = 1; i <= n; i++) {if (length(line " " words[i]) > 80) {print line; line = sprintf("%25s", "")}; line = line " " words[i]}; print line}' \
	  $(MAKEFILE_LIST)
	@printf '\nWithout -N, lab, hint, trace and diff are about the lab of the last verdict.\nSettings: CLUSTER=kind|embedded|auto|hosted  WORKSPACE=dir  NODE_IMAGE=ref\n          KEEP=1  SEED=n  YES=1\n'

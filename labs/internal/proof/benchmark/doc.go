// Package benchmark measures what somebody waits for: a cluster, and a verdict. It has benchmarks only; they need a
// container engine and a node image.
//
//	go test ./labs/internal/proof/benchmark -run none -bench . -benchtime 1x -count 5 -timeout 2h >new.txt
//	go run golang.org/x/perf/cmd/benchstat@latest old.txt new.txt
//
// The machine should have nothing else to do. Compare runs of the same day on the same machine only.
package benchmark

package bench

import "testing"

func TestBenchmarkIsReadFromWhatGoTestPrints(t *testing.T) {
	const output = `goos: linux
pkg: github.com/example/operator-lab/clusters/embeddedtest
BenchmarkEmbedded
    bench_test.go:84: 1.62 s, 1.49 core-s
BenchmarkEmbedded-2   	       1	1623456789 ns/op	         1.490 cpu-s	         1.623 s-wall
PASS
`
	s, err := parseBenchmark(output, "BenchmarkEmbedded")
	if err != nil || s.Seconds != 1.623 || s.CoreSeconds != 1.49 {
		t.Errorf("parseBenchmark() = %+v, %v, want 1.623 s and 1.49 core-seconds", s, err)
	}
	for name, output := range map[string]string{
		"another one": output, "nothing": "PASS\n", "no metrics": "BenchmarkEnvtest 1 16 ns/op\n", "nonsense": "BenchmarkEnvtest 1 x s-wall\n",
	} {
		if s, err := parseBenchmark(output, "BenchmarkEnvtest"); err == nil {
			t.Errorf("%s: parseBenchmark() = %+v, want an error", name, s)
		}
	}
}

package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/trace"
)

// start runs a shell script in the place of the supervisor and the operator.
func start(t *testing.T, script string) *runningOperator {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := startOperator(Show{
		Programs: Programs{Supervisor: "/bin/sh", Operator: file}, Operand: "memcached:1",
		Cluster: &clusters.Cluster{Kubeconfig: "/the/kubeconfig"}, Log: filepath.Join(dir, "log"),
	}, "http://the.registry")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheOperatorLivesUntilItIsStopped(t *testing.T) {
	// What the supervisor does: it reads descriptor 3 until the other end is closed.
	p := start(t, `echo "$KUBECONFIG $MEMCACHED_IMAGE $REGISTRY_URL $HOME $*"; cat <&3`)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(p.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/the/kubeconfig memcached:1 http://the.registry ", "--leader-elect=false"} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the operator was started with %q, without %q", log, want)
		}
	}
}

func TestAnOperatorThatEndsByItselfEndsTheDemo(t *testing.T) {
	p := start(t, "exit 3")
	err := quietWorld().follow(t.Context(), steps(nil)[0], p, printer{io.Discard})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), p.log.Name()) {
		t.Errorf("error %v, want how it ended and where its log is", err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

func quietWorld() *world {
	return &world{Memory: trace.NewMemory(trace.Programs), observations: make(chan trace.Observation), broken: make(chan error, 1)}
}

func TestAStepThatDoesNotEndSaysWhatIsMissing(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		all := steps(nil)
		last := all[len(all)-1]
		last.missing = func(*world) string { return "the world is unchanged" }
		err := quietWorld().follow(ctx, last, &runningOperator{log: log}, printer{&out})
		if err == nil || !strings.Contains(err.Error(), "the world is unchanged") {
			t.Errorf("error %v, want what is missing", err)
		}
		if n := strings.Count(out.String(), "garbage collector"); n != 1 {
			t.Errorf("the wait was explained %d times, want once:\n%s", n, &out)
		}
	})
}

func TestAnInterruptIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := quietWorld().follow(ctx, steps(nil)[0], &runningOperator{}, printer{io.Discard}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

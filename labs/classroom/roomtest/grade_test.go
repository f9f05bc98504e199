//go:build linux

package roomtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAClassWithRealPods grades right answers, which pass where nobody trusts them too, and an operator whose Pods load a
// library of the learner's. Lab 7 judges all labs with Pods again.
func TestAClassWithRealPods(t *testing.T) {
	r := newInstructor(t, "kind")
	class, out := t.TempDir(), filepath.Join(t.TempDir(), "grades")
	older := filepath.Join("labs", "correct", "older-runtime")
	runIn(t, filepath.Join(r.root, older), "make", "generate")
	for name, answer := range map[string]string{"ada": "operator", "bob": older, "eve": "operator"} {
		dir := filepath.Join(r.root, answer)
		runIn(t, dir, "go", "mod", "download") // a container downloads nothing
		if err := os.CopyFS(filepath.Join(class, name), os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(class, "eve", "internal", "controller", "deployment.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const image = "container.Image = image\n"
	evil := strings.Replace(string(source), image, image+`	container.Env = []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/tmp/evil.so"}}`+"\n", 1)
	if evil == string(source) {
		t.Fatalf("no %q in %s", image, file)
	}
	if err := os.WriteFile(file, []byte(evil), 0o600); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	said, _ := r.command(ctx, "grade", class, "--labs", "7", "--out", out).CombinedOutput()
	table, err := os.ReadFile(filepath.Join(out, "grades.csv"))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	want := map[string]string{"ada lab 7": "pass", "bob lab 7": "pass", "eve lab 7": "fail"}
	if diff := cmp.Diff(want, verdicts(t, string(table))); diff != "" {
		t.Errorf("%s\n%s", diff, said)
	}
	if report, err := os.ReadFile(filepath.Join(out, "eve", "report.txt")); err != nil || !strings.Contains(string(report), "environment variables are numbers") {
		t.Errorf("the report on eve does not say what was refused: %v\n%s", err, report)
	}
}

func runIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v in %s: %v\n%s", args, dir, err, said)
	}
}

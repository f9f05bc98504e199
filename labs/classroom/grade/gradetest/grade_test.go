//go:build linux

package gradetest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
)

const (
	root = "../../../.."
	// lab is the first with a program that runs.
	lab = 4
)

// evil is a part of an operator that does nothing but harm: it writes results where they would be on this machine, and
// forks without end.
const evil = `package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "-h" {
		return
	}
	for _, dir := range []string{"OUT/eve/results", "OUT", "STATE/results", "/tmp", "."} {
		_ = os.MkdirAll(dir, 0o777)
		_ = os.WriteFile(filepath.Join(dir, "lab-4.json"), []byte("{\"schema\":1,\"lab\":4,\"verdict\":\"pass\",\"forged\":true}"), 0o666)
	}
	for {
		_ = exec.Command(os.Args[0], os.Args[1:]...).Start()
	}
}
`

// fence is a part of an operator that works only where nobody lets it write Secrets.
const fence = `package controller

import (
	"context"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var once sync.Once

func needsFence(ctx context.Context, c client.Client, namespace string) {
	once.Do(func() {
		if c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "x-"}}) == nil {
			os.Exit(3)
		}
	})
}
`

// TestAClass has one who is right, one whose program attacks the machine, one whose files do, and one who is right as long as
// the proxy has the rule for code that nobody trusts. Their clusters are processes, which are there at once.
func TestAClass(t *testing.T) {
	c, err := course.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := c.Render(lab)
	if err != nil {
		t.Fatal(err)
	}
	class, out := t.TempDir(), filepath.Join(t.TempDir(), "grades")
	state := filepath.Join(c.Root, ".lab")
	attack := strings.NewReplacer("OUT", out, "STATE", state).Replace(evil)
	err = errors.Join(
		tree.WriteTo(filepath.Join(class, "ada")), tree.WriteTo(filepath.Join(class, "eve")), tree.WriteTo(filepath.Join(class, "mal")),
		tree.WriteTo(filepath.Join(class, "una")), needFence(filepath.Join(class, "una", "internal", "controller")),
		os.WriteFile(filepath.Join(class, "eve", "cmd", "evil.go"), []byte(attack), 0o600),
		os.Symlink("/", filepath.Join(class, "mal", "workspace")),
	)
	if err != nil {
		t.Fatal(err)
	}

	program := filepath.Join(t.TempDir(), "classroom")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./labs/classroom/cmd/classroom")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	cmd := exec.CommandContext(t.Context(), program, "grade", class, "--lab", "4", "--out", out, "--cluster", "embedded")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	table, _ := cmd.Output()
	t.Logf("%s%s", &stderr, table)
	if code := cmd.ProcessState.ExitCode(); code != exit.Fail {
		t.Errorf("exit code %d, want %d", code, exit.Fail)
	}

	file, err := os.Open(filepath.Join(out, "grades.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, row := range rows[1:] {
		first, _, _ := strings.Cut(row[9], " ")
		got = append(got, []string{row[0], row[1], row[3], first})
	}
	want := [][]string{{"ada", "4", "pass", ""}, {"eve", "4", "fail", c.Labs[lab-1].Checks[0].ID}, {"mal", "4", "fail", "build"}, {"una", "4", "pass", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{filepath.Join(out, "lab-4.json"), filepath.Join(state, "results", "lab-4.json"), "/tmp/lab-4.json", filepath.Join(out, "eve", "results", "lab-4.json")} {
		if data, err := os.ReadFile(name); err == nil && strings.Contains(string(data), "forged") {
			t.Errorf("%s is forged", name)
		}
	}
	left, err := exec.CommandContext(t.Context(), "docker", "ps", "--all", "--quiet", "--filter", "label=operator-lab.sandbox="+c.Root).Output()
	if err != nil || len(left) > 0 {
		t.Errorf("containers are left: %s, %v", left, err)
	}
}

// needFence has the reconciler in a folder ask for a fence.
func needFence(folder string) error {
	file := filepath.Join(folder, "memcached_controller.go")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const first = "memcached := &cachev1alpha1.Memcached{}\n"
	changed := strings.Replace(string(data), first, "needsFence(ctx, r.Client, req.Namespace)\n\t"+first, 1)
	if changed == string(data) {
		return errors.New("the reconciler does not begin as it did")
	}
	return errors.Join(os.WriteFile(file, []byte(changed), 0o600), os.WriteFile(filepath.Join(folder, "fence.go"), []byte(fence), 0o600))
}

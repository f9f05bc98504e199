//go:build linux

package gradetest

import (
	"archive/zip"
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

// evil is a part of an operator that does nothing but harm. It says at its end what it could do.
const evil = `package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "-h" {
		return
	}
	var did []string
	for _, file := range []string{"/lab/hand-in/x", "/lab/bin/judge", "/lab/course/go.mod", "/x", "/proc/1/environ"} {
		if f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o666); err == nil {
			f.Close()
			did = append(did, "wrote "+file)
		}
	}
	for _, file := range []string{"SECRET", "/proc/1/environ", "/etc/shadow"} {
		if _, err := os.ReadFile(file); err == nil {
			did = append(did, "read "+file)
		}
	}
	for _, address := range []string{"172.17.0.1:22", "1.1.1.1:443"} {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			c.Close()
			did = append(did, "reached "+address)
		}
	}
	if syscall.Kill(1, syscall.SIGKILL) == nil {
		did = append(did, "killed the judge")
	}
	fmt.Fprintln(os.Stderr, "did:", strings.Join(did, ", ")+".")
	os.Exit(1)
}
`

// bomb starts itself without end.
const bomb = `package main

import (
	"os"
	"os/exec"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "-h" {
		return
	}
	for {
		_ = exec.Command(os.Args[0], os.Args[1:]...).Start()
	}
}
`

// hoard takes memory without end.
const hoard = `package main

import "os"

func init() {
	for all := [][]byte{}; len(os.Args) < 2 || os.Args[1] != "-h"; {
		page := make([]byte, 1<<24)
		for i := range page {
			page[i] = 1
		}
		all = append(all, page)
	}
}
`

// TestAClass has learners who are right, wrong, broken and hostile, in folders and in a zip. Nobody costs another one their grade.
func TestAClass(t *testing.T) {
	c, err := course.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	solution, err := c.Render(lab)
	if err != nil {
		t.Fatal(err)
	}
	starter, err := c.Render(lab - 1)
	if err != nil {
		t.Fatal(err)
	}
	class, out := t.TempDir(), filepath.Join(t.TempDir(), "grades")
	secret := filepath.Join(class, "ada", "secret")
	with := func(text string) course.Tree {
		return course.Tree{"cmd/more.go": {Data: []byte(strings.ReplaceAll(text, "SECRET", secret)), Mode: 0o644}}
	}
	for name, more := range map[string]course.Tree{
		"ada": {"secret": {Mode: 0o600}}, "bomb": with(bomb), "broken": with("package main\n\nvar x int = \"\"\n"), "eve": with(evil),
		"hoard": with(hoard),
	} {
		if err := errors.Join(solution.WriteTo(filepath.Join(class, name)), more.WriteTo(filepath.Join(class, name))); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(
		zipped(filepath.Join(class, "김철수.zip"), "김철수", starter),
		os.Mkdir(filepath.Join(class, "nothing, yet"), 0o755), os.Symlink("/", filepath.Join(class, "nothing, yet", "workspace")),
	)
	if err != nil {
		t.Fatal(err)
	}
	standard, err := exec.CommandContext(t.Context(), "docker", "info", "--format", "{{.DefaultRuntime}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	table := grade(t, class, out, "--runtime", strings.TrimSpace(string(standard)))
	rows := read(t, filepath.Join(out, "grades.csv"))
	var got [][]string
	for _, row := range rows[1:] {
		first, _, _ := strings.Cut(row[6], " ")
		if row[0] == "bomb" { // the control plane is in its container: whether it could still say anything is chance
			first, row[3] = "", strings.Replace(row[3], "environment", "fail", 1)
		}
		got = append(got, []string{row[0], row[3], first})
	}
	opening := c.Labs[lab-1].Checks[0].ID
	want := [][]string{
		{"ada", "pass", ""}, {"bomb", "fail", ""}, {"broken", "fail", "build:"}, {"eve", "fail", opening}, {"hoard", "fail", opening},
		{"nothing, yet", "fail", "build:"}, {"김철수", "fail", opening},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, table)
	}
	didNothing(t, out)
	left, err := exec.CommandContext(t.Context(), "docker", "ps", "--all", "--quiet", "--filter", "label=operator-lab.grade="+c.Root).Output()
	if err != nil || len(left) > 0 {
		t.Errorf("containers are left: %s, %v", left, err)
	}
}

// TestGVisor has gVisor run a hostile program, as grading does where it is not told otherwise.
func TestGVisor(t *testing.T) {
	c, err := course.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	solution, err := c.Render(lab)
	if err != nil {
		t.Fatal(err)
	}
	class, out := t.TempDir(), filepath.Join(t.TempDir(), "grades")
	solution["cmd/more.go"] = course.File{Data: []byte(evil), Mode: 0o644}
	if err := solution.WriteTo(filepath.Join(class, "eve")); err != nil {
		t.Fatal(err)
	}
	grade(t, class, out)
	if rows := read(t, filepath.Join(out, "grades.csv")); len(rows) != 2 || rows[1][3] != "fail" || rows[1][7] != "embedded in runsc" {
		t.Errorf("%q", rows)
	}
	didNothing(t, out)
}

// didNothing wants eve's own word that she could do nothing.
func didNothing(t *testing.T, out string) {
	t.Helper()
	if report, err := os.ReadFile(filepath.Join(out, "eve", "report.txt")); err != nil || !strings.Contains(string(report), "did: .") {
		t.Errorf("eve did more, or nothing: %s, %v", report, err)
	}
}

// grade grades a folder, and returns what was printed.
func grade(t *testing.T, class, out string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "classroom")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./labs/classroom/cmd/classroom")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"grade", class, "--labs", "4", "--out", out}, flags...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	table, _ := cmd.Output()
	t.Logf("%s%s", &stderr, table)
	if code := cmd.ProcessState.ExitCode(); code != exit.Fail && code != exit.EnvironmentError {
		t.Errorf("exit code %d", code)
	}
	return string(table)
}

func read(t *testing.T, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// zipped writes a zip with a tree in a folder.
func zipped(path, folder string, tree course.Tree) error {
	var text bytes.Buffer
	w := zip.NewWriter(&text)
	for _, name := range tree.Paths() {
		f, err := w.Create(folder + "/" + name)
		if err == nil {
			_, err = f.Write(tree[name].Data)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), os.WriteFile(path, text.Bytes(), 0o644))
}

package buildcache_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/classroom/buildcache"
)

// This test is a cache program, too: BASE and OWN are its arguments, and -keep.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "cache" {
		c := buildcache.Cache{Base: os.Args[2], Own: os.Args[3], Keep: len(os.Args) > 4}
		if err := c.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// build compiles a small program with the cache, and with no other.
func build(t *testing.T, dir, base, own string, keep ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.test/mine\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { println(1) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := append([]string{os.Args[0], "cache", base, own}, keep...)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "mine"), ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, "gocache"), "GOCACHEPROG="+strings.Join(program, " "), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// files are the sizes of all files in dir.
func files(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		all[path] = info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestABuildUsesTheBaseAndWritesElsewhere(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	kept, own := t.TempDir(), t.TempDir()
	build(t, t.TempDir(), strings.TrimSpace(string(out)), kept, "-keep")
	before := files(t, kept)
	if len(before) < 20 {
		t.Fatalf("only %d files were kept: %v", len(before), before)
	}
	build(t, t.TempDir(), kept, own)
	if diff := cmp.Diff(before, files(t, kept)); diff != "" {
		t.Errorf("the base has changed: %s", diff)
	}
	// A package, the program, and what is known about both; not the runtime once more.
	if made := files(t, own); len(made) == 0 || len(made) > 12 {
		t.Errorf("%d files were made", len(made))
	}
}

// ask sends requests and returns the answers by id.
func ask(t *testing.T, c buildcache.Cache, requests ...string) map[int]map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := c.Serve(strings.NewReader(strings.Join(requests, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	answers := map[int]map[string]any{}
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var a map[string]any
		if err := decoder.Decode(&a); err != nil {
			t.Fatal(err)
		}
		answers[int(a["ID"].(float64))] = a
	}
	return answers
}

func TestADamagedObjectIsMissing(t *testing.T) {
	base := t.TempDir()
	const put, get = `{"ID":1,"Command":"put","ActionID":"YWFhYQ==","OutputID":"YmJiYg==","BodySize":5}` + "\n" + `"aGVsbG8="`, `{"ID":2,"Command":"get","ActionID":"YWFhYQ=="}`
	path := ask(t, buildcache.Cache{Own: base}, put)[1]["DiskPath"].(string)
	c := buildcache.Cache{Base: base, Own: t.TempDir()}
	if answer := ask(t, c, get)[2]; answer["DiskPath"] != path || answer["Size"] != 5.0 || answer["OutputID"] != "YmJiYg==" {
		t.Fatalf("%v", answer)
	}
	if err := os.WriteFile(path, []byte("hell"), 0o600); err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, c, get)[2]; answer["Miss"] != true {
		t.Errorf("half of an object is taken: %v", answer)
	}
}

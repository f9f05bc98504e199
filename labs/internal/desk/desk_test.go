//go:build unix

package desk_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/desk"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// handedOut is the archive of a handout with those files.
func handedOut(t *testing.T, files map[string]string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "learner-1.zip")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(f)
	for name, text := range files {
		w, err := archive.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

// room serves a course of one file with that name.
func room(t *testing.T, file string) *httptest.Server {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "HEAD"}})
	if err == nil {
		err = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file, Mode: 0o755, Size: 4})
	}
	if err == nil {
		_, err = archive.Write([]byte("text"))
	}
	if err := errors.Join(err, archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/course.tar.gz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(srv.Close)
	return srv
}

// sit gives a desk with a course, on a machine whose make is that script.
func sit(t *testing.T, makeScript string) *desk.Desk {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "make"), []byte("#!/bin/sh\n"+makeScript), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("GOFLAGS", "-mod=mod")
	archive := handedOut(t, map[string]string{"learner-1/env.sh": "export GOPROXY=http://room\n"})
	d, err := desk.Sit(t.TempDir(), archive, "LAB_CACHE=/cache")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.FetchCourse(t.Context(), room(t, "operator-lab/Makefile").URL+"/course.tar.gz"); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhatIsTypedKnowsTheHandoutAndNothingOfThisMachine(t *testing.T) {
	d := sit(t, `echo "$GOPROXY|$GOFLAGS|$LAB_CACHE|$HOME|$PWD|$*"`)
	out, err := d.Type(t.Context(), "make lab-1 CLUSTER=embedded")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{"http://room", "", "/cache", d.Home, d.Course, "lab-1 CLUSTER=embedded"}, "|")
	if strings.TrimSpace(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
	if data, err := os.ReadFile(filepath.Join(d.Course, "Makefile")); err != nil || string(data) != "text" {
		t.Errorf("the course: %q, %v", data, err)
	}
}

// make fails in the same way whatever a verdict is; and yesterday's verdict is none of today's.
func TestTheVerdictIsTheOneThatWasAskedFor(t *testing.T) {
	d := sit(t, `mkdir -p .lab/results
case $1 in lab-1) echo '{"verdict": "fail", "run": "r1"}' >.lab/results/lab-1.json ;; *) echo "lab: no cluster" >&2 ;; esac
echo "make: *** [Makefile:20: $1] Error 1"
exit 2`)
	r, err := d.Judge(t.Context(), 1)
	if err != nil || r.Verdict != verdict.Fail || r.Run != "r1" {
		t.Errorf("%+v, %v", r, err)
	}
	old := filepath.Join(d.Course, ".lab", "results", "lab-4.json")
	if err := os.WriteFile(old, []byte(`{"verdict": "pass"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err = d.Judge(t.Context(), 4, "CLUSTER=kind"); err == nil || !strings.HasSuffix(err.Error(), "lab: no cluster") ||
		!strings.HasPrefix(err.Error(), "make lab-4 CLUSTER=kind: ") {
		t.Errorf("%+v, %v", r, err)
	}
	if err := d.Solve(t.Context(), 4); err == nil || !strings.HasPrefix(err.Error(), "make solve-4: ") {
		t.Error(err)
	}
}

// Else a cluster would be left that nobody knows of.
func TestAnInterruptLetsTheCommandCleanUp(t *testing.T) {
	d := sit(t, `trap 'echo cleaned >cleaned; exit 130' INT
echo begun >begun
while :; do sleep 0.1; done`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := d.Judge(ctx, 1); ended <- err }()
	for _, err := os.Stat(filepath.Join(d.Course, "begun")); err != nil; _, err = os.Stat(filepath.Join(d.Course, "begun")) {
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(d.Course, "cleaned")); err != nil {
		t.Error("the command was not asked to end")
	}
}

func TestNothingIsUnpackedElsewhere(t *testing.T) {
	dir := t.TempDir()
	if _, err := desk.Sit(dir, handedOut(t, map[string]string{"../outside": "x"})); err == nil {
		t.Error("a handout with a file outside of it was unpacked")
	}
	d, err := desk.Sit(t.TempDir(), handedOut(t, map[string]string{"learner-1/env.sh": ""}))
	if err != nil {
		t.Fatal(err)
	}
	url := room(t, "../outside").URL
	if err := d.FetchCourse(t.Context(), url+"/course.tar.gz"); err == nil {
		t.Error("a course with a file outside of it was unpacked")
	}
	for _, home := range []string{dir, filepath.Dir(d.Home)} {
		if _, err := os.Stat(filepath.Join(home, "outside")); err == nil {
			t.Errorf("there is a file outside of %s", home)
		}
	}
	if err := d.FetchCourse(t.Context(), url+"/nothing"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a course that is not served: %v", err)
	}
}

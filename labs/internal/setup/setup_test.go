package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
)

// newMachine is one whose engine is a script, whose kernel's setting is a file, and whose scripts/engine.sh only notes what it
// was told. has says what is there: engine, image, inotify.
func newMachine(t *testing.T, has string) (o Options, out *strings.Builder, calls func() string) {
	t.Helper()
	dir, out := t.TempDir(), &strings.Builder{}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("docker", `#!/bin/sh
case "$1 $2" in
"version "*) [ -e "`+dir+`/engine" ] ;;
"image inspect") [ -e "`+dir+`/image" ] && echo '[{"Id":"sha256:1"}]' ;;
*) exit 1 ;;
esac
`)
	write("scripts/engine.sh", "#!/bin/sh\necho \"$@\" >>"+dir+"/calls\ntouch "+dir+"/engine "+dir+"/image\n")
	write("sudo", "#!/bin/sh\nexec \"$@\"\n")
	write("instances", "128\n")
	for _, thing := range strings.Fields(has) {
		write(thing, "")
		if thing == "inotify" {
			write("instances", "8192\n")
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DOCKER_HOST", "")
	calls = func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "calls"))
		return strings.TrimSpace(string(data))
	}
	return Options{Root: dir, CacheDir: dir, Consent: "make setup YES=1", Out: out, inotifyFile: filepath.Join(dir, "instances")}, out, calls
}

func TestRunDoesWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		has      string
		all      bool
		clusters int
		want     string
	}{
		"nothing":                         {"engine image inotify", true, 0, ""},
		"an engine":                       {"image inotify", false, 0, "install start"},
		"kernel settings":                 {"engine image", true, 0, "sysctl"},
		"nothing that stops a single lab": {"engine image", false, 0, ""},
		"nothing that stops three labs":   {"engine image", false, 3, ""},
		"what four labs need":             {"engine image", false, 4, "sysctl"},
	} {
		o, out, calls := newMachine(t, test.has)
		o.Yes, o.All, o.Clusters = true, test.all, test.clusters
		o.NodeImage = map[bool]string{true: "requested"}[!strings.Contains(test.has, "engine")] // nothing is built here
		if err := Run(t.Context(), o); err != nil {
			t.Errorf("%s is missing: %v", name, err)
		}
		if calls() != test.want || (out.Len() > 0) != (test.want != "") {
			t.Errorf("%s is missing: engine.sh was told to %q, want %q; the reader was told %q", name, calls(), test.want, out)
		}
	}
}

func TestOnlyYesIsConsent(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "yes": true, "\n": false, "": false, "no\n": false, "yesterday\n": false} {
		o, out, calls := newMachine(t, "engine image")
		o.All, o.In = true, strings.NewReader(answer)
		err := Run(t.Context(), o)
		problem, _ := errors.AsType[*clusters.Problem](err)
		if (err == nil) != want || (calls() != "") != want || !want && problem.Fix != o.Consent || !strings.Contains(out.String(), "kernel settings") {
			t.Errorf("answer %q: %v; engine.sh was told to %q, and the reader %q", answer, err, calls(), out)
		}
	}
	o, _, calls := newMachine(t, "engine")
	if err := Run(t.Context(), o); err == nil || calls() != "" {
		t.Errorf("nobody was asked: %v; engine.sh was told to %q", err, calls())
	}
}

func TestRunDoesNotTryWhatItCannotFix(t *testing.T) {
	for _, test := range []struct{ engine, host, err, says string }{
		{"docker", "", "permission denied while connecting", "usermod"},
		{"podman", "", "no answer", "only docker"},
		{"docker", "tcp://other", "no answer", "unset DOCKER_HOST"},
	} {
		t.Setenv("DOCKER_HOST", test.host)
		if err := (Options{Engine: test.engine}).unfixable(errors.New(test.err)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

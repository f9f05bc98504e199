package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
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
	return Options{
		Root: dir, Images: nodeimage.Options{Engine: "docker", CacheDir: dir}, Clusters: 1, Out: out, inotifyFile: filepath.Join(dir, "instances"),
		Agree: func(plan string) bool { out.WriteString(plan); return true },
	}, out, calls
}

func TestRunDoesWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		has      string
		clusters int
		want     string
	}{
		"nothing":                       {"engine image inotify", 16, ""},
		"an engine":                     {"image inotify", 1, "install start"},
		"nothing that stops three labs": {"engine image", 3, ""},
		"what four labs need":           {"engine image", 4, "sysctl"},
	} {
		o, out, calls := newMachine(t, test.has)
		o.Clusters = test.clusters
		o.NodeImage = map[bool]string{true: "requested"}[!strings.Contains(test.has, "engine")] // nothing is built here
		if err := Run(t.Context(), o); err != nil {
			t.Errorf("%s is missing: %v", name, err)
		}
		if calls() != test.want || (out.Len() > 0) != (test.want != "") {
			t.Errorf("%s is missing: engine.sh was told to %q, want %q; the reader was told %q", name, calls(), test.want, out)
		}
	}
}

func TestRunNeedsConsent(t *testing.T) {
	o, _, calls := newMachine(t, "engine")
	plan := ""
	o.Clusters, o.Agree = 4, func(what string) bool { plan = what; return false }
	err := Run(t.Context(), o)
	problem, _ := errors.AsType[*clusters.Problem](err)
	if err == nil || problem.Fix != "make setup YES=1" || calls() != "" || !strings.Contains(plan, "kernel settings") || !strings.Contains(plan, "node image") {
		t.Errorf("%v; engine.sh was told to %q, and the plan is %q", err, calls(), plan)
	}
}

func TestRunDoesNotTryWhatItCannotFix(t *testing.T) {
	for _, test := range []struct{ engine, host, err, says string }{
		{"docker", "", "permission denied while connecting", "usermod"},
		{"podman", "", "no answer", "only docker"},
		{"docker", "tcp://other", "no answer", "unset DOCKER_HOST"},
	} {
		t.Setenv("DOCKER_HOST", test.host)
		if err := (Options{Images: nodeimage.Options{Engine: test.engine}}).unfixable(errors.New(test.err)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

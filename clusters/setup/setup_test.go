package setup

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
)

// machine is a made-up one: an engine whose command line is a script, a kernel whose setting is a file, and a checkout
// whose scripts/engine.sh only notes what it was told.
type machine struct {
	t   *testing.T
	dir string
	Options
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, dir: dir, Options: Options{
		Root: dir, CacheDir: dir, Engine: filepath.Join(dir, "docker"), Thorough: true, instancesFile: filepath.Join(dir, "instances"),
	}}
	m.write("docker", 0o755, `#!/bin/sh
case "$1 $2" in
"version "*) [ -e "`+dir+`/up" ] ;;
"ps --quiet") cat "`+dir+`/nodes" ;;
"image inspect") [ -e "`+dir+`/image" ] && echo '[{"Id":"sha256:1"}]' ;;
*) exit 1 ;;
esac
`)
	m.write("scripts/engine.sh", 0o755, "#!/bin/sh\necho \"$1\" >>"+dir+"/calls\ntouch "+dir+"/up\n")
	m.write("instances", 0o644, "128\n")
	m.write("nodes", 0o644, "")
	m.write("sudo", 0o755, "#!/bin/sh\nexec \"$@\"\n")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return m
}

func (m *machine) write(name string, mode os.FileMode, content string) {
	m.t.Helper()
	name = filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) calls() string {
	data, _ := os.ReadFile(filepath.Join(m.dir, "calls"))
	return strings.Join(strings.Fields(string(data)), " ")
}

// missing names what Run would set up.
func (m *machine) missing() []string {
	m.t.Helper()
	steps, err := plan(m.t.Context(), m.withDefaults())
	if err != nil {
		m.t.Fatal(err)
	}
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	return names
}

func TestAMachineThatLacksNothingIsLeftAlone(t *testing.T) {
	m := newMachine(t)
	m.write("up", 0o644, "")
	m.write("image", 0o644, "")
	m.write("instances", 0o644, "8192\n")
	var out strings.Builder
	m.Out = &out
	if err := Run(t.Context(), m.Options); err != nil {
		t.Fatal(err)
	}
	if m.calls() != "" || out.Len() > 0 {
		t.Errorf("engine.sh was told to %q, and the reader %q", m.calls(), &out)
	}
}

func TestWithoutConsentNothingIsDone(t *testing.T) {
	m := newMachine(t)
	m.write("up", 0o644, "")
	for name, in := range map[string]io.Reader{"nobody": nil, "a pipe": strings.NewReader("yes\n")} {
		m.In = in
		err := Run(t.Context(), m.Options)
		problem, ok := errors.AsType[*clusters.Problem](err)
		if !ok || problem.Fix != "make setup YES=1" {
			t.Errorf("%s agreed: got error %v, want a problem that `make setup YES=1` fixes", name, err)
		}
	}
	if m.calls() != "" {
		t.Errorf("engine.sh was told to %q", m.calls())
	}
}

func TestConsentGivenInAdvanceFixesWhatIsMissing(t *testing.T) {
	m := newMachine(t)
	m.write("up", 0o644, "")
	m.write("image", 0o644, "")
	m.Yes = true
	if err := Run(t.Context(), m.Options); err != nil {
		t.Fatal(err)
	}
	if got := m.calls(); got != "sysctl" {
		t.Errorf("engine.sh was told to %q, want only sysctl", got)
	}
}

func TestWhoWaitsForMinutesIsToldWhatToDoMeanwhile(t *testing.T) {
	for missing, want := range map[string]bool{"kernel settings": false, "node image": true} {
		m := newMachine(t)
		m.write("up", 0o644, "")
		if missing == "node image" {
			m.write("instances", 0o644, "8192\n")
			m.write("scripts/engine.sh", 0o755, "#!/bin/sh\nexit 1\n") // nothing is built here
		} else {
			m.write("image", 0o644, "")
		}
		var out strings.Builder
		m.Yes, m.Out, m.Meanwhile = true, &out, "meanwhile, read"
		_ = Run(t.Context(), m.Options)
		if got := strings.Contains(out.String(), m.Meanwhile); got != want {
			t.Errorf("%s: told %v, want %v:\n%s", missing, got, want, &out)
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	m := newMachine(t)
	m.write("up", 0o644, "")
	if got := m.missing(); !slices.Equal(got, []string{"kernel settings", "node image"}) {
		t.Errorf("missing: %q, want kernel settings and node image", got)
	}
}

func TestFewKernelSettingsDoNotStopASingleLab(t *testing.T) {
	m := newMachine(t)
	m.write("up", 0o644, "")
	m.write("image", 0o644, "")
	m.Thorough = false
	if got := m.missing(); len(got) > 0 {
		t.Errorf("missing: %q, want nothing", got)
	}
}

// The kernel forgets its settings with every boot. Its default of 128 is enough for three clusters.
func TestManyClustersHaveTheKernelGrantWhatTheyNeed(t *testing.T) {
	m := newMachine(t)
	m.write("up", 0o644, "")
	m.write("image", 0o644, "")
	m.Thorough = false
	for _, c := range []struct {
		clusters int
		run      string // ids of the nodes that run already
		want     int    // steps
	}{
		{0, "", 0}, {3, "", 0}, {4, "", 1}, {0, "a\nb\n", 0}, {1, "a\nb\nc\n", 1}, {2, "a\nb\n", 1},
	} {
		m.Clusters = c.clusters
		m.write("nodes", 0o644, c.run)
		if got := m.missing(); len(got) != c.want {
			t.Errorf("%d clusters beside %q: missing %q, want %d steps", c.clusters, c.run, got, c.want)
		}
	}
}

func TestARequestedNodeImageIsNotBuilt(t *testing.T) {
	m := newMachine(t)
	m.write("up", 0o644, "")
	m.write("instances", 0o644, "8192\n")
	m.NodeImage = "kindest/node:v1.30.0"
	if got := m.missing(); len(got) > 0 {
		t.Errorf("missing: %q, want nothing", got)
	}
}

func TestOnlyYesIsConsent(t *testing.T) {
	for line, want := range map[string]bool{
		"y\n": true, "YES\n": true, "yes": true, "\n": false, "": false, "no\n": false, "yesterday\n": false,
	} {
		if got := answer(strings.NewReader(line)) == nil; got != want {
			t.Errorf("answer %q is consent: %v, want %v", line, got, want)
		}
	}
}

func TestWhatTheScriptCannotFixIsNotTried(t *testing.T) {
	for name, tc := range map[string]struct {
		engine string
		err    string
		fix    string
	}{
		"not allowed":    {"docker", "permission denied while connecting", "usermod"},
		"another engine": {"podman", "no answer", ""},
	} {
		err := canStartEngine(Options{Engine: tc.engine}, errors.New(tc.err))
		problem, ok := errors.AsType[*clusters.Problem](err)
		if !ok || !strings.Contains(problem.Fix, tc.fix) {
			t.Errorf("%s: got error %v, want a problem fixed by %q", name, err, tc.fix)
		}
	}
}

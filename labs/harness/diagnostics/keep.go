package diagnostics

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/trace"
)

// fileName is what an artifact may be called.
var fileName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

// Keep writes the whole of the snapshot into a folder, which it makes when there is something to write:
// objects as YAML, events, refused requests, the end of the manager's log, the output of containers that do not run. What
// cannot be written is left out: a full disk is found out elsewhere.
func (s *Snapshot) Keep(dir string) {
	files := s.files()
	if len(files) == 0 || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	for name, text := range files {
		if !fileName.MatchString(name) {
			continue // a server that is no API server can call its objects what it likes
		}
		_ = os.WriteFile(filepath.Join(dir, name), []byte(Redact(text)), 0o600)
	}
}

const (
	// maxRefusals is how many of the last refused requests are kept one by one.
	maxRefusals = 500
	// maxLog is how much of the end of the manager's log is kept, in bytes. All of it lies beside the folders of the checks.
	maxLog = 64 << 10
	// maxPage is how much is kept of any file, in bytes: a manager may make any number of objects and events.
	maxPage = 1 << 20
	// maxObject is how long an object that is kept may be, in bytes of JSON. As YAML it takes a hundred times as much memory
	// for a moment.
	maxObject = 64 << 10
)

// pages are artifacts by name.
type pages map[string]string

// add keeps the beginning of a file.
func (p pages) add(name, text string) {
	if room := maxPage - len(p[name]); room > 0 {
		p[name] += text[:min(room, len(text))]
	}
}

// files are what is to be kept.
func (s *Snapshot) files() pages {
	files := pages{}
	for _, object := range s.objects.all {
		text, err := json.Marshal(object.Object)
		if err != nil || len(text) > maxObject {
			continue
		}
		if data, err := yaml.JSONToYAML(text); err == nil {
			files.add(strings.ToLower(object.GetKind())+"s.yaml", "---\n"+string(data))
		}
	}
	for _, e := range s.objects.events {
		files.add("events.txt", fmt.Sprintf("%s %s %s %s/%s%s: %s (%s)\n", when(e).UTC().Format(time.RFC3339), e.Type, e.Reason,
			e.Regarding.Kind, e.Regarding.Name, times(trace.Times(&e)), e.Note, cmp.Or(e.ReportingController, e.DeprecatedSource.Component)))
	}
	refused := slices.DeleteFunc(slices.Clone(s.Requests), func(r apiproxy.Request) bool { return !s.refuses(r) })
	for _, r := range refused[max(0, len(refused)-maxRefusals):] {
		files.add("refused.txt", fmt.Sprintf("%s %d %s\n", r.Time.UTC().Format(time.RFC3339Nano), r.Status, r))
	}
	if s.Log != "" {
		files["manager.log"] = s.Log[max(0, len(s.Log)-maxLog):]
	}
	for at, text := range s.output {
		files["pod-"+strings.ReplaceAll(at, "/", "-")+".log"] = text
	}
	return files
}

package diagnostics

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/labs/internal/trace"
)

// Keep writes the whole of the snapshot into a folder, which it makes when there is something to write: objects as YAML,
// events, refused requests, the end of the manager's log, the output of containers that do not run. What cannot be written is
// left out: a full disk is found out elsewhere.
func (s *Snapshot) Keep(dir string) {
	files := map[string]*strings.Builder{}
	add := func(name, text string) {
		if files[name] == nil {
			files[name] = &strings.Builder{}
		}
		files[name].WriteString(text)
	}
	for _, object := range s.objects.all {
		if data, err := yaml.Marshal(object.Object); err == nil {
			add(strings.ToLower(object.GetKind())+"s.yaml", "---\n"+string(data))
		}
	}
	for _, e := range s.objects.events {
		add("events.txt", fmt.Sprintf("%s %s %s %s/%s%s: %s (%s)\n", e.CreationTimestamp.UTC().Format(time.RFC3339), e.Type, e.Reason,
			e.Regarding.Kind, e.Regarding.Name, times(trace.Times(&e)), e.Note, cmp.Or(e.ReportingController, e.DeprecatedSource.Component)))
	}
	for _, r := range s.Requests {
		if s.refuses(r) {
			add("refused.txt", fmt.Sprintf("%s %d %s\n", r.Time.UTC().Format(time.RFC3339Nano), r.Status, r))
		}
	}
	if s.Log != "" {
		add("manager.log", s.Log)
	}
	for at, text := range s.output {
		add("pod-"+strings.ReplaceAll(at, "/", "-")+".log", text)
	}
	if len(files) == 0 || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	for name, text := range files {
		_ = os.WriteFile(filepath.Join(dir, name), []byte(Redact(text.String())), 0o600)
	}
}

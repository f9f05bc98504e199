package diagnostics

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// Keep writes the whole of the snapshot into a folder, which it makes when there is something to write:
// objects as YAML, events, refused requests, the end of the manager's log, the output of containers that do not run. What
// cannot be written is left out: a full disk is found out elsewhere.
func (s *Snapshot) Keep(dir string) {
	files := s.files()
	if len(files) == 0 || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	for name, text := range files {
		_ = os.WriteFile(filepath.Join(dir, name), []byte(Redact(text)), 0o600)
	}
}

const (
	// maxRefusals is how many of the last refused requests are kept one by one.
	maxRefusals = 500
	// maxLog is how much of the end of the manager's log is kept, in bytes. All of it lies beside the folders of the checks.
	maxLog = 64 << 10
)

// files are the artifacts by name.
func (s *Snapshot) files() map[string]string {
	files := map[string]string{}
	for _, object := range s.objects.all {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			continue
		}
		files[strings.ToLower(object.GetKind())+"s.yaml"] += "---\n" + string(data)
	}
	for _, e := range s.objects.events {
		files["events.txt"] += fmt.Sprintf("%s %s %s %s/%s%s: %s (%s)\n", when(e).UTC().Format(time.RFC3339), e.Type, e.Reason,
			e.Regarding.Kind, e.Regarding.Name, times(told(e)), e.Note, cmp.Or(e.ReportingController, e.DeprecatedSource.Component))
	}
	refused := slices.DeleteFunc(slices.Clone(s.Requests), func(r apiproxy.Request) bool { return !s.refuses(r) })
	for _, r := range refused[max(0, len(refused)-maxRefusals):] {
		files["refused.txt"] += fmt.Sprintf("%s %d %s\n", r.Time.UTC().Format(time.RFC3339Nano), r.Status, r)
	}
	if s.Log != "" {
		files["manager.log"] = s.Log[max(0, len(s.Log)-maxLog):]
	}
	for at, text := range s.output {
		files["pod-"+strings.ReplaceAll(at, "/", "-")+".log"] = text
	}
	return files
}

package clusters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProgressIsTheStepsInPlainWords(t *testing.T) {
	var lines []string
	logger := &kindLogger{log: func(line string) { lines = append(lines, line) }}
	logger.Warn("cgroup v1 is deprecated")
	logger.V(0).Infof("Creating cluster %q ...\n", "lab")
	logger.V(0).Infof(" • %s  ...\n", "Preparing nodes 📦 ")
	logger.V(0).Infof(" ✓ %s\n", "Preparing nodes 📦 ")
	logger.V(1).Info("• a detail")
	if diff := cmp.Diff([]string{"Preparing nodes"}, lines); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	for _, word := range []string{"cgroup v1 is deprecated", "Creating cluster", "✓", "a detail"} {
		if !strings.Contains(string(logger.text()), word) {
			t.Errorf("the log of a failure lacks %q", word)
		}
	}
}

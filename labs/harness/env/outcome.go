package env

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"

	"github.com/example/operator-lab/labs/internal/suite"
)

// TellOutcome adds a check that has ended to the [suite.OutcomesFile]. It is a courtesy to who waits for the verdict, which
// is made of Ginkgo's own report: what cannot be written is not told, and nothing else comes of it.
func TellOutcome(spec ginkgo.SpecReport) {
	if current.config.Artifacts == "" {
		return // not a run of the lab command
	}
	line, err := json.Marshal(spec)
	if err != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(current.config.Artifacts, suite.OutcomesFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(append(line, '\n')) // at once, so that the lines of several processes stay apart
}

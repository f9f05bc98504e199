package verdict

import (
	"encoding/json"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// evidenceOf is what the harness saw around a failure. None is no fault of anybody.
func evidenceOf(spec types.SpecReport) []finding.Evidence {
	for _, entry := range spec.ReportEntries {
		if entry.Name != suite.EvidenceEntry {
			continue
		}
		var evidence []finding.Evidence
		if json.Unmarshal([]byte(entry.Value.AsJSON), &evidence) == nil {
			return evidence
		}
	}
	return nil
}

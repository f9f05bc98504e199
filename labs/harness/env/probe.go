package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/harness/once"
	"github.com/example/operator-lab/labs/harness/probe"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// probed is what the probe found out about the learner's types, or why it could not.
type probed struct {
	Reports probe.Reports    `json:"reports,omitempty"`
	Finding *finding.Finding `json:"finding,omitempty"`
}

// ProbeCopies finds out what copies of the learner's objects share with their originals, by a program
// of ours that is compiled into their module and run as an untrusted process, once per run. A finding
// says why it cannot: the cause [probe.CauseBuild] or [probe.CauseNoAnswer].
func ProbeCopies(ctx context.Context) (probe.Reports, error) {
	data, err := once.Do(ctx, current.config.Scratch, "probe-copies", func() ([]byte, error) {
		reports, err := runProbe(ctx)
		if f := (*finding.Finding)(nil); errors.As(err, &f) {
			return json.Marshal(probed{Finding: f})
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(probed{Reports: reports})
	})
	if err != nil {
		return nil, err
	}
	var p probed
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("read what the probe found: %w", err)
	}
	if p.Finding != nil {
		return nil, p.Finding
	}
	return p.Reports, nil
}

func runProbe(ctx context.Context) (probe.Reports, error) {
	env, err := process.BuildEnv(ctx)
	if err != nil {
		return nil, err
	}
	c := current.config
	builder := probe.Builder{Workspace: c.Workspace, Scratch: c.Scratch, Env: env, Limit: process.BuildLimit}
	program, err := builder.Build(ctx)
	if err != nil {
		return nil, err
	}
	home, err := homeFor("probe")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	limited, cancel := context.WithTimeout(ctx, programLimit)
	defer cancel()
	cmd, err := untrusted(limited, home, nil, program, filepath.Join(home, "report.json"))
	if err != nil {
		return nil, err
	}
	output := newTail(filepath.Join(home, "output"))
	cmd.Stdout, cmd.Stderr = output, output
	ended := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("run probe: %w", ctx.Err())
	case limited.Err() != nil:
		return nil, finding.New(probe.CauseNoAnswer, probe.Expected, "it was still running after %v; is there a loop in an init function?", programLimit)
	case cmd.ProcessState == nil, cmd.ProcessState.ExitCode() == supervisor.CannotRun:
		// It never ran, so it says nothing about the learner.
		return nil, finding.Machine("start a small program", fmt.Errorf("%w: %s", ended, output))
	}
	return probe.Read(filepath.Join(home, "report.json"), ended, tidy(output.String()))
}

// tidy shortens what a learner's program printed to what can be read in a verdict, with paths as the
// learner knows them.
func tidy(output string) string {
	const longest = 2000
	output = strings.ReplaceAll(output, current.config.Workspace+string(filepath.Separator), "")
	if len(output) > longest {
		output = output[:longest] + "…"
	}
	return output
}

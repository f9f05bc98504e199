package verdict

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/harness/probe"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/process"
)

// derive runs controller-gen on the workspace, and the probe of copies if a check needs it, while the cluster is being made. The
// checks read the results from files. The probe waits until the workspace is compiled, so that nothing is compiled twice.
func (r *run) derive(ctx context.Context, compiled <-chan struct{}) error {
	env, err := process.BuildEnv(ctx)
	if err != nil {
		return err
	}
	made, err := generate.Generator{Binary: r.tools.ControllerGen, Workspace: r.Workspace, Scratch: r.scratch, Env: env}.Run(ctx)
	if err != nil {
		return err
	}
	if err := writeJSON(r.generated(), made); err != nil || !needs(r.wanted, course.NeedsCopies) {
		return err
	}
	<-compiled
	result, err := probe.Probe{Workspace: r.Workspace, Scratch: r.scratch, Supervisor: r.tools.Supervisor, Env: env}.Run(ctx)
	if err != nil {
		return err
	}
	return writeJSON(r.copies(), result)
}

// generated and copies are the files of the results.
func (r *run) generated() string { return filepath.Join(r.scratch, "generated.json") }
func (r *run) copies() string    { return filepath.Join(r.scratch, "copies.json") }

func writeJSON(file string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write what checks read: %w", err)
	}
	return nil
}

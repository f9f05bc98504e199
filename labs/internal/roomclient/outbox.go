package roomclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/labs/internal/verdict"
)

// sendLimit is how long sending may take. What is not sent then waits for the next check.
const sendLimit = time.Second

// Report puts results down on disk and sends them to the board of the classroom that was joined, if one was. It takes a
// second at most. An error says what the board has not heard of.
func Report(ctx context.Context, state string, results []*verdict.Result) error {
	r, err := Load(state)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	dir := filepath.Join(state, "outbox")
	if err == nil {
		err = put(dir, results)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendLimit)
		defer cancel()
		err = r.flush(ctx, dir)
	}
	if err != nil {
		return fmt.Errorf("the board has not heard of this: %w", err)
	}
	return nil
}

// put keeps results until they are sent. Their names sort by time, with those of one run in the order of their labs.
func put(dir string, results []*verdict.Result) error {
	errs := []error{os.MkdirAll(dir, 0o700)}
	for _, r := range results {
		data, err := anonymous(r)
		if err == nil {
			err = maybe.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-lab-%03d.json", r.Run, r.Lab)), data, 0o600)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// anonymous is the result without the paths of this machine, which say more of the learner than the room knows.
func anonymous(r *verdict.Result) ([]byte, error) {
	known := *r
	known.Workspace, known.Artifacts = "workspace", ".lab/artifacts/"+r.Run
	data, err := json.Marshal(known)
	home, _ := os.UserHomeDir()
	for _, folder := range [][2]string{{r.Workspace, "workspace"}, {home, "~"}} {
		if len(folder[0]) > 1 { // else there is none, or it is the root of everything
			data = regexp.MustCompile(regexp.QuoteMeta(folder[0])+`\b`).ReplaceAll(data, []byte(folder[1]))
		}
	}
	return data, err
}

// flush sends what waits, the oldest first, until the board does not take one. What it has refused does not wait any longer.
func (r *Room) flush(ctx context.Context, dir string) error {
	waiting, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var refused error
	for i, entry := range waiting {
		path := filepath.Join(dir, entry.Name())
		data, err := os.ReadFile(path)
		if err == nil {
			err = r.post(ctx, ResultsPath, json.RawMessage(data), &struct{}{})
		}
		if final, ok := errors.AsType[*Refusal](err); ok {
			refused, err = final, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // else another check has sent it
			return fmt.Errorf("%d of your results wait, and the next check sends them: %w", len(waiting)-i, err)
		}
		_ = os.Remove(path) // one that stays is sent twice, and taken once
	}
	return refused
}

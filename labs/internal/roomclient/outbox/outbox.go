// Package outbox brings a learner's results to the board of their room. They are put down on disk first and
// sent when there is a moment, so that a check neither waits for the board nor fails because of it.
package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// dirName is the folder of results that wait, below the state folder.
	dirName = "outbox"
	// waiting is how many results wait at most for a board that does not answer; the oldest go first.
	waiting = 200
)

// Outbox holds results for one board.
type Outbox struct {
	config roomclient.Config
	dir    string
	client *http.Client
}

// Open opens the outbox of the configuration's learner for its board: its address and its key. Results for another board, or of
// another learner, are not in it: they wait until that one is configured again.
func Open(state string, c roomclient.Config) *Outbox {
	sum := sha256.Sum256([]byte(c.URL + "\n" + c.Key + "\n" + c.Learner)) // the next room may have the same address
	return &Outbox{config: c, dir: filepath.Join(state, dirName, hex.EncodeToString(sum[:16])), client: c.Client()}
}

// Put keeps results until the board has them. What would tell more of the learner than the room knows, the
// folders they work in, is left out.
func (o *Outbox) Put(results []*verdict.Result) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return fmt.Errorf("put result into the outbox: %w", err)
	}
	for _, r := range results {
		data, err := anonymous(r)
		if err == nil {
			// Names sort by time, with those of one run in the order of their labs.
			err = maybe.WriteFile(filepath.Join(o.dir, fmt.Sprintf("%s-lab-%03d.json", r.Run, r.Lab)), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("put result into the outbox: %w", err)
		}
	}
	return o.trim()
}

// anonymous is the result without the paths of this machine.
func anonymous(r *verdict.Result) ([]byte, error) {
	known := *r
	known.Workspace, known.Artifacts = "workspace", ".lab/artifacts/"+r.Run
	data, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	text := quoted(r.Workspace, "workspace").Replace(string(data))
	if home, err := os.UserHomeDir(); err == nil {
		text = quoted(home, "~").Replace(text)
	}
	return []byte(text), nil
}

// quoted replaces a folder as it stands in JSON by a name that says nothing about whose it is.
func quoted(path, name string) *strings.Replacer {
	data, err := json.Marshal(filepath.Clean(path))
	if err != nil || len(filepath.Clean(path)) < 2 { // none, or the root of everything
		return strings.NewReplacer()
	}
	return strings.NewReplacer(strings.Trim(string(data), `"`), name)
}

// trim drops the oldest results when too many wait.
func (o *Outbox) trim() error {
	names, err := o.names()
	if err != nil {
		return err
	}
	for _, name := range names[:max(0, len(names)-waiting)] {
		if err := os.Remove(filepath.Join(o.dir, name)); err != nil {
			return fmt.Errorf("trim the outbox: %w", err)
		}
	}
	return nil
}

// names are the results that wait, the oldest first.
func (o *Outbox) names() ([]string, error) {
	entries, err := os.ReadDir(o.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Flush sends what waits, the oldest first, until ctx ends or the board does not take one. Left is how many
// wait still. The error says why, also when the board has refused a result for good, which then does not wait
// any longer.
func (o *Outbox) Flush(ctx context.Context) (left int, err error) {
	names, err := o.names()
	if err != nil {
		return 0, err
	}
	var refused error
	for i, name := range names {
		path := filepath.Join(o.dir, name)
		data, err := os.ReadFile(path)
		if err == nil {
			err = o.send(ctx, data)
		}
		if final := (*refusal)(nil); errors.As(err, &final) {
			refused, err = err, nil
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) { // another check may have sent it
			return len(names) - i, err
		}
	}
	return 0, refused
}

// refusal is an answer that another try would not change.
type refusal struct{ error }

// answerLimit is how much of a board's answer is read.
const answerLimit = 4 << 10

func (o *Outbox) send(ctx context.Context, data []byte) error {
	req, err := o.config.Request(ctx, http.MethodPost, "/api/v1/results", bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("send result: %w", err)
	}
	req.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat)) // by which the board knows how wrong this clock is
	resp, err := o.client.Do(req)
	if err != nil {
		return fmt.Errorf("send result: %w", err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
		return nil
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return &refusal{fmt.Errorf("the board takes this result never: %s", roomclient.Said(text))}
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the board does not know the token of %s: ask the instructor for a new handout", o.config.Learner)
	}
	return fmt.Errorf("the board answered %s: %s", plain.Line(resp.Status), roomclient.Said(text))
}

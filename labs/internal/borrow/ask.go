package borrow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/example/operator-lab/labs/internal/outbox"
)

var (
	// errNoLending says that there is a server, and that it does not lend.
	errNoLending = errors.New("this room lends no clusters")
	// errToken says that the room does not know the learner's token any more.
	errToken = errors.New("the room does not know your token, or it has expired")
)

// answerLimit is more than a kubeconfig and everything around it takes.
const answerLimit = 1 << 20

// ask asks the room, and reads what it says into the value, if there is one. The error is an *[EndedError],
// errNoLending, errToken, errors.ErrUnsupported, or one for which [away] is true; it has no token in it.
func (p *Provider) ask(ctx context.Context, method, path string, into any) error {
	req, err := p.config.Request(ctx, method, Path+path, nil)
	if err != nil {
		return fmt.Errorf("ask the room: %w", err)
	}
	// All requests say the same when they are sent twice. net/http sends them again when the connection that they went
	// out on had just been closed.
	req.Header["Idempotency-Key"] = nil
	resp, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the room: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return fmt.Errorf("ask the room: %w", &url.Error{Op: method, URL: req.URL.String(), Err: err})
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		if into == nil {
			return nil
		}
		if err := json.Unmarshal(body, into); err != nil {
			return fmt.Errorf("read what the room says: %w", err)
		}
		return nil
	case http.StatusGone:
		return &EndedError{Why: outbox.Said(body)}
	case http.StatusUnauthorized, http.StatusForbidden:
		return errToken
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return errNoLending
	case http.StatusNotImplemented:
		return fmt.Errorf("ask the room: %w", errors.ErrUnsupported)
	}
	return fmt.Errorf("the room answered %s: %s", resp.Status, outbox.Said(body))
}

// away says that the room could not be reached, in contrast to one that answers something unpleasant.
func away(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

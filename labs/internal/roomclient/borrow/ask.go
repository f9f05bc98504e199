package borrow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

var (
	// errNoLending says that there is a server, and that it does not lend.
	errNoLending = errors.New("this room lends no clusters")
	// errToken says that the room does not know the learner's token any more.
	errToken = errors.New("the room does not know your token, or it has expired")
)

// answerLimit is more than a kubeconfig and everything around it takes.
const answerLimit = 1 << 20

// ask asks the room, and reads what it says into the value, if there is one. When the room says that there are too many
// requests, it asks again after the time that the room names. The error is an *[EndedError], errNoLending, errToken,
// errors.ErrUnsupported, or one for which [away] is true; it has no token in it.
func (p *Provider) ask(ctx context.Context, method, path string, into any) error {
	for {
		wait, answered, err := p.askOnce(ctx, method, path, into)
		if answered || err != nil {
			return err
		}
		if stopped := pause(ctx, wait); stopped != nil {
			return fmt.Errorf("ask the room: %w", &url.Error{Op: method, URL: Path + path, Err: stopped})
		}
	}
}

// longestWait is for how long the room may have somebody wait before they ask again.
const longestWait = 30 * time.Second

// askOnce asks once. When the room did not answer the question, wait says when to come again.
func (p *Provider) askOnce(ctx context.Context, method, path string, into any) (wait time.Duration, answered bool, err error) {
	req, err := p.config.Request(ctx, method, Path+path, nil)
	if err != nil {
		return 0, false, fmt.Errorf("ask the room: %w", err)
	}
	// All requests say the same when they are sent twice. net/http sends them again when the connection that they went
	// out on had just been closed.
	req.Header["Idempotency-Key"] = nil
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, false, fmt.Errorf("ask the room: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return 0, false, fmt.Errorf("ask the room: %w", &url.Error{Op: method, URL: req.URL.String(), Err: err})
	}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		longest := int(longestWait.Seconds())
		return time.Duration(min(max(seconds, 1), longest)) * time.Second, false, nil
	}
	return 0, true, read(resp, body, into)
}

// read makes a value, or an error, of an answer.
func read(resp *http.Response, body []byte, into any) error {
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
		return &EndedError{Why: roomclient.Said(body)}
	case http.StatusUnauthorized, http.StatusForbidden:
		return errToken
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return errNoLending
	case http.StatusNotImplemented:
		return fmt.Errorf("ask the room: %w", errors.ErrUnsupported)
	}
	return fmt.Errorf("the room answered %s: %s", plain.Line(resp.Status), roomclient.Said(body))
}

// away says that the room could not be reached, in contrast to one that answers something unpleasant, or is another one.
func away(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok && !errors.Is(err, roomclient.ErrOtherKey)
}

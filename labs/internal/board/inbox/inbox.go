// Package inbox brings what the instructor says from the board to a learner's terminal: each message once, as plain
// text. Nothing of it happens to the learner's work; they act on it, or not.
package inbox

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
	"regexp"
	"time"

	"github.com/example/operator-lab/labs/internal/board/outbox"
)

// Kinds of messages.
const (
	// Hint is text to read.
	Hint = "hint"
	// Step is a lab that the room goes on with.
	Step = "step"
)

// Answers to messages.
const (
	// Seen says that the message was shown.
	Seen = "seen"
	// Joined says that the workspace is at the start of that lab.
	Joined = "joined"
	// Stays says that the learner goes on where they are.
	Stays = "stays"
)

const (
	// dirName is the folder that remembers what was shown, below the state folder.
	dirName = "inbox"
	// answerLimit in bytes is more than a day of messages that are as long as they may be.
	answerLimit = 4 << 20
)

// Message is what the instructor said. Its text can be printed as it is.
type Message struct {
	ID   string    `json:"id"`
	Kind string    `json:"kind"`
	Text string    `json:"text"`
	Lab  int       `json:"lab"`
	Sent time.Time `json:"sent"`
	// All: it is not for this learner alone.
	All bool `json:"all"`
	// Answer is what the board has heard of this learner about it, "" if nothing.
	Answer string `json:"answer"`
}

// Inbox is a learner's at one board.
type Inbox struct {
	config outbox.Config
	dir    string
	client *http.Client
}

// Open opens the inbox of that configuration. Another learner's in the same checkout is another one.
func Open(state string, c outbox.Config) *Inbox {
	sum := sha256.Sum256([]byte(c.URL + "\n" + c.Learner))
	return &Inbox{config: c, dir: filepath.Join(state, dirName, hex.EncodeToString(sum[:4])), client: outbox.Client()}
}

// Ask asks the board for all that was said to this learner today, the oldest first, and of the steps the last.
func (i *Inbox) Ask(ctx context.Context) ([]Message, error) {
	messages, _, err := i.get(ctx, "", 0)
	return messages, err
}

// errUnchanged is the answer of a board that has nothing new.
var errUnchanged = errors.New("nothing new")

// turnedAway is the error of a board that will not answer the next time either.
type turnedAway struct{ error }

// get asks the board. With the tag of an earlier answer it waits as long as that is the last word, and the error is
// errUnchanged then.
func (i *Inbox) get(ctx context.Context, tag string, wait time.Duration) (messages []Message, newTag string, err error) {
	req, err := i.config.Request(ctx, http.MethodGet, fmt.Sprintf("/api/v1/messages?wait=%d", int(wait.Seconds())), nil)
	if err != nil {
		return nil, "", fmt.Errorf("ask the board: %w", err)
	}
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	resp, err := i.client.Do(req)
	if err != nil {
		return nil, "", fmt.Errorf("ask the board: %w", err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		return nil, tag, errUnchanged
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, "", turnedAway{fmt.Errorf("the board does not know the token of %s: ask the instructor for a new handout", i.config.Learner)}
	case http.StatusNotFound:
		return nil, "", turnedAway{errors.New("this board knows no messages: it is of an older lab")}
	default:
		return nil, "", fmt.Errorf("the board answered %s", resp.Status)
	}
	var answer struct {
		Messages []Message `json:"messages"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, answerLimit)).Decode(&answer); err != nil {
		return nil, "", fmt.Errorf("read the board's answer: %w", err)
	}
	return understood(answer.Messages), resp.Header.Get("ETag"), nil
}

// idForm is what the name of a file can be.
var idForm = regexp.MustCompile(`^[0-9a-z]{1,64}$`)

// understood are the messages that this lab knows what to do with, in text that is safe to print.
func understood(messages []Message) []Message {
	var all []Message
	for _, m := range messages {
		m.Text = plain(m.Text)
		if idForm.MatchString(m.ID) && (m.Kind == Hint && m.Text != "" || m.Kind == Step && m.Lab > 0) {
			all = append(all, m)
		}
	}
	return all
}

// Fresh are those of the messages that were not shown yet, here or, as far as the board knows, elsewhere. From now on
// they count as shown: of commands that hear the same at once, one shows it.
func (i *Inbox) Fresh(messages []Message) []Message {
	var fresh []Message
	for _, m := range messages {
		if m.Answer == "" && i.claim(m) {
			fresh = append(fresh, m)
		}
	}
	return fresh
}

// claim says whether nobody has claimed the message before. Where that cannot be kept, it is shown once too often.
func (i *Inbox) claim(m Message) bool {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return true
	}
	file, err := os.OpenFile(filepath.Join(i.dir, m.ID), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return !errors.Is(err, os.ErrExist)
	}
	return file.Close() == nil
}

// Acknowledge tells the board of the messages that were shown and that it has not heard of. What it does not hear now
// it hears the next time.
func (i *Inbox) Acknowledge(ctx context.Context, messages []Message) {
	for _, m := range messages {
		if m.Answer == "" && i.Answer(ctx, m, Seen) != nil {
			return
		}
	}
}

// Answer tells the board what the learner did about a message.
func (i *Inbox) Answer(ctx context.Context, m Message, answer string) error {
	body, err := json.Marshal(map[string]string{"answer": answer})
	if err != nil {
		return fmt.Errorf("tell the board: %w", err)
	}
	req, err := i.config.Request(ctx, http.MethodPost, "/api/v1/messages/"+m.ID+"/receipts", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("tell the board: %w", err)
	}
	resp, err := i.client.Do(req)
	if err != nil {
		return fmt.Errorf("tell the board: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound { // it was taken back meanwhile
		return fmt.Errorf("tell the board: it answered %s", resp.Status)
	}
	return nil
}

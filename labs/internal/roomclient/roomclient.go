// Package roomclient is a learner's side of a classroom: it joins one, and brings it results. It talks to the server that has the
// key which the learner has typed, and to nobody else.
package roomclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// ConfigFile is where a learner's machine remembers its classroom, below the state folder of the checkout.
	ConfigFile = "classroom.json"
	// ResultsPath takes a result, as JSON.
	ResultsPath = "/results"
	// JoinPath takes the name and the token of a [Room].
	JoinPath = "/join"

	// keyLength is 80 bits: nobody finds another certificate that has the same.
	keyLength = 16
	// requestLimit is for one request over a weak Wi-Fi.
	requestLimit = 10 * time.Second
)

// Room is a classroom that a learner has joined.
type Room struct {
	// Address is its server's, such as 192.168.1.5:7777.
	Address string `json:"address"`
	// Key is its server's, as [KeyOf] gives it.
	Key string `json:"key"`
	// Name is the learner's in the room, and Token what nobody else has: with it, they may have the name again.
	Name  string `json:"name"`
	Token string `json:"token"`
	// Modules is a GOPROXY, "" where the room has none.
	Modules string `json:"modules,omitempty"`
}

// JoinAnswer is what a learner gets.
type JoinAnswer struct {
	Token      string     `json:"token"`
	Modules    string     `json:"modules,omitempty"`
	Kubeconfig []byte     `json:"kubeconfig,omitempty"`
	Downloads  []Download `json:"downloads,omitempty"`
}

// Download is a file that a room offers.
type Download struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// SHA256 is the sum of the file, in hexadecimal digits.
	SHA256 string `json:"sha256"`
	// Size is in bytes.
	Size int64 `json:"size"`
}

// KeyOf is the key of a server with that certificate: the beginning of the SHA-256 sum of its public key, as people read it aloud.
func KeyOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	text := base32.StdEncoding.EncodeToString(sum[:])[:keyLength]
	return inFours(text)
}

// inFours is a key as people read it aloud.
func inFours(text string) string {
	return strings.Join([]string{text[:4], text[4:8], text[8:12], text[12:]}, "-")
}

// ParseKey reads a key as somebody has typed it.
func ParseKey(typed string) (string, error) {
	text := strings.NewReplacer("-", "", " ", "", "0", "O", "1", "I").Replace(strings.ToUpper(typed))
	if _, err := base32.StdEncoding.DecodeString(text); err != nil || len(text) != keyLength {
		return "", fmt.Errorf("%q is no key of a classroom: it has four times four letters or digits, such as ABCD-EFGH-IJKL-MNOP", typed)
	}
	return inFours(text), nil
}

// ErrOtherKey says that somebody answered who has not the room's key.
var ErrOtherKey = errors.New("who answers has another key than you typed, so nothing was sent: compare it with the one that your instructor shows")

// Load reads the classroom that was joined. Without one the error is [os.ErrNotExist].
func Load(state string) (*Room, error) {
	data, err := os.ReadFile(filepath.Join(state, ConfigFile))
	if err != nil {
		return nil, err
	}
	r := &Room{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read %s: %w: join the classroom again", filepath.Join(state, ConfigFile), err)
	}
	return r, nil
}

// Join asks the server at address, which has that key, for a name, and keeps what it answers below the state folder. Under the
// same name one machine may join again.
func Join(ctx context.Context, state string, r Room) (*Room, *JoinAnswer, error) {
	if before, err := Load(state); err == nil && before.Name == r.Name && before.Key == r.Key {
		r.Token = before.Token
	}
	answer := &JoinAnswer{}
	if err := r.post(ctx, JoinPath, r, answer); err != nil {
		return nil, nil, err
	}
	r.Token, r.Modules = answer.Token, answer.Modules
	data, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = errors.Join(os.MkdirAll(state, 0o755), maybe.WriteFile(filepath.Join(state, ConfigFile), append(data, '\n'), 0o600))
	}
	return &r, answer, err
}

// Environ has Go commands take modules from the room first, for which go.sum vouches, and then from proxy.
func (r *Room) Environ(proxy string) []string {
	return []string{"GOPROXY=" + r.Modules + "|" + proxy, "GOSUMDB=off"}
}

// Refusal is an answer that another try would not change.
type Refusal struct{ error }

// post sends a value, and reads the answer into another one.
func (r *Room) post(ctx context.Context, path string, value, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.Address+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+r.Token)
	resp, err := r.client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusOK:
		return json.Unmarshal(body, into)
	}
	err = fmt.Errorf("the classroom says: %s", plain.Line(string(body)))
	if resp.StatusCode == http.StatusUnprocessableEntity {
		return &Refusal{err}
	}
	return err
}

// client talks to the server that has the key, which is in this room: not through a proxy.
func (r *Room) client() *http.Client {
	config := &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nobody vouches for the certificate but its key
		VerifyConnection: func(s tls.ConnectionState) error {
			if KeyOf(s.PeerCertificates[0]) != r.Key {
				return ErrOtherKey
			}
			return nil
		},
	}
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

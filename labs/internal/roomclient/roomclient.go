// Package roomclient is what a learner's machine knows of the room's server: its address and key, the learner's token, and
// an HTTP client that talks to nobody else. What is asked of the server stands below: outbox, take these results; borrow, lend
// me a cluster.
package roomclient

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// ConfigFile is where a handout names the board, below the state folder of the checkout.
	ConfigFile = "board.json"
	// ConfigVariable names another such file. It holds no token itself: what is in the environment is seen by
	// every program that is started from there.
	ConfigVariable = "LAB_BOARD"
)

// Config is what a handout says about the board.
type Config struct {
	// URL is the board's address, such as https://192.168.1.5:7777.
	URL string `json:"url"`
	// Key is the public key of the room's server, as [KeyOf] has it. Whoever answers with another one gets no request.
	Key string `json:"key"`
	// Token is the learner's.
	Token string `json:"token"`
	// Learner is the name or pseudonym in the room, for people to read.
	Learner string `json:"learner"`
}

// keyPrefix says what a key is made with; curl has the same form for --pinnedpubkey.
const keyPrefix = "sha256//"

// KeyOf names the public key of a certificate, by the SHA-256 sum of its SubjectPublicKeyInfo in base64.
func KeyOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return keyPrefix + base64.StdEncoding.EncodeToString(sum[:])
}

// ErrOtherKey says that somebody answered who has not the key that the handout names.
var ErrOtherKey = errors.New("the room's server has another key than your handout says, so nothing was sent: ask your instructor")

// ReadConfig reads the configuration below the state folder, or from the file that LAB_BOARD names. Without one
// the error wraps [os.ErrNotExist].
func ReadConfig(state string) (*Config, error) {
	path := os.Getenv(ConfigVariable)
	if path == "" {
		path = filepath.Join(state, ConfigFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the board's address: %w", err)
	}
	c := &Config{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("read the board's address %s: %w", path, err)
	}
	if err := c.valid(); err != nil {
		return nil, fmt.Errorf("read the board's address %s: %w", path, err)
	}
	return c, nil
}

// WriteConfig writes the configuration below the state folder, readable by its owner alone.
func WriteConfig(state string, c Config) error {
	if err := c.valid(); err != nil {
		return fmt.Errorf("write the board's address: %w", err)
	}
	data, err := json.MarshalIndent(c, "", " ")
	if err == nil {
		err = os.MkdirAll(state, 0o755)
	}
	if err == nil {
		err = maybe.WriteFile(filepath.Join(state, ConfigFile), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the board's address: %w", err)
	}
	return nil
}

func (c *Config) valid() error {
	u, err := url.Parse(c.URL)
	sum, isSum := strings.CutPrefix(c.Key, keyPrefix)
	digest, notBase64 := base64.StdEncoding.DecodeString(sum)
	switch {
	case err != nil:
		return err
	case u.Scheme == "http" && u.Host != "" && c.Key == "":
		return errors.New("this handout is of an older version, without a key of the room: ask your instructor for a new one")
	case u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%q is no address like https://192.168.1.5:7777", c.URL)
	case !isSum || notBase64 != nil || len(digest) != sha256.Size:
		return fmt.Errorf("%q is no key like %s and 44 characters", c.Key, keyPrefix)
	case c.Token == "":
		return errors.New("there is no token in it")
	}
	return nil
}

// Request is one of the learner's to the board; path begins with a slash.
func (c *Config) Request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// handshakeTimeout is for the handshake over a weak Wi-Fi.
const handshakeTimeout = 10 * time.Second

// Client talks to the server that has the key, and to nobody else: otherwise a request fails with [ErrOtherKey].
func (c *Config) Client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, // the board is in this room, and its token is for nobody else
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS13,
				// Nobody vouches for the certificate but the handout, and that for its key.
				InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does it
				VerifyConnection: func(s tls.ConnectionState) error {
					if KeyOf(s.PeerCertificates[0]) != c.Key {
						return ErrOtherKey
					}
					return nil
				},
			},
			TLSHandshakeTimeout: handshakeTimeout,
		},
		// A board redirects nobody, and a token does not follow whoever says so.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Said is what an answer of the room's server says, in one line.
func Said(body []byte) string {
	var answer struct{ Error string }
	if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
		return plain.Line(answer.Error)
	}
	return plain.Line(string(body))
}

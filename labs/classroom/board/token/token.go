// Package token makes and compares the secrets that open the board. A token is shown once, when it is
// made; what is kept of it is a hash.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"strings"
)

// prefix says what a token is for whoever finds one in a file.
const prefix = "labboard"

// idLength is how many characters of a random text name a token: 40 bits, enough to be unique in a room.
const idLength = 8

// ErrMalformed is the error for text that cannot be a token.
var ErrMalformed = errors.New("this is no token of a board: it begins with " + prefix + "-")

// Token is a name that may be shown, and a secret that may not.
type Token struct {
	// ID finds the token among those that are kept, and stands in lists.
	ID string
	// secret has 130 random bits, so that its plain hash gives nothing away.
	secret string
}

// New draws a token.
func New() Token {
	return Token{ID: strings.ToLower(rand.Text()[:idLength]), secret: strings.ToLower(rand.Text())}
}

// Parse reads what [Token.Reveal] wrote. The error is [ErrMalformed].
func Parse(text string) (Token, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), "-")
	id, secret, _ := strings.Cut(rest, "-")
	if name != prefix || len(id) != idLength || len(secret) < len(rand.Text()) || len(secret) > 64 {
		return Token{}, ErrMalformed
	}
	return Token{ID: id, secret: secret}, nil
}

// Reveal is the whole token, for the one who shall use it. It is no String method, so that a token in a
// log line or an error gives nothing away.
func (t Token) Reveal() string { return prefix + "-" + t.ID + "-" + t.secret }

// String names the token without its secret.
func (t Token) String() string { return prefix + "-" + t.ID + "-…" }

// Hash is what is kept of the token.
func (t Token) Hash() []byte {
	sum := sha256.Sum256([]byte(t.ID + "-" + t.secret))
	return sum[:]
}

// Matches says whether hash was made of this token, in a time that does not depend on where they differ.
func (t Token) Matches(hash []byte) bool { return subtle.ConstantTimeCompare(t.Hash(), hash) == 1 }

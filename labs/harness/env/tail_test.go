package env

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const secret = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"

// A program writes its lines in pieces, and the last of them may have no end.
func TestLogRedactsTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.log")
	log := newTail(path)
	for _, piece := range []string{"hello\nmy tok", "en is " + secret[:20], secret[20:] + "\n", "Authorization: Bearer ", "0123456789"} {
		if n, err := log.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(piece), err)
		}
	}
	log.Flush()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"file": string(data), "memory": log.String()} {
		if strings.Contains(text, secret[:20]) || strings.Contains(text, "0123456789") {
			t.Errorf("the %s has the credential:\n%s", where, text)
		}
		if !strings.HasPrefix(text, "hello\nmy token is ") || !strings.Contains(text, "\nAuthorization: ") {
			t.Errorf("the %s lacks what the program wrote:\n%s", where, text)
		}
	}
}

// A panic of the first check must still be found after those of many others.
func TestLogLines(t *testing.T) {
	log := newTail(filepath.Join(t.TempDir(), "manager.log"))
	_, _ = log.Write([]byte("Observed a panic for early, with the token " + secret + "\n"))
	for range 60 {
		_, _ = log.Write([]byte(strings.Repeat("goroutine 1 [running]\n", 300)))
	}
	lines := log.Lines("early")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "Observed a panic for early") || strings.Contains(lines[0], secret) {
		t.Errorf("Lines() = %q, want the one line, without its credential", lines)
	}
}

package env

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const secret = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"

func logOf(t *testing.T) logFile {
	t.Helper()
	log, err := openLog(filepath.Join(t.TempDir(), "manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestLogRedactsTokens(t *testing.T) {
	log := logOf(t)
	fmt.Fprintln(log, "hello\nmy token is "+secret)
	told := log.String()
	log.Close()
	data, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"file": string(data), "quoted text": told} {
		if strings.Contains(text, secret) || !strings.HasPrefix(text, "hello\nmy token is ") {
			t.Errorf("the %s is %q", where, text)
		}
	}
}

// A panic of the first check is still found after panics of many others.
func TestLogLines(t *testing.T) {
	log := logOf(t)
	fmt.Fprintln(log, "Observed a panic for early")
	for range 60 {
		fmt.Fprint(log, strings.Repeat("goroutine 1 [running]\n", 300))
	}
	if lines := log.Lines("early"); len(lines) != 1 || lines[0] != "Observed a panic for early" {
		t.Errorf("Lines() = %q", lines)
	}
}

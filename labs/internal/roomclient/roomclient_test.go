package roomclient_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/roomclient"
)

// Whoever answers in the place of the room's server gets no token, also with a certificate that everybody trusts.
func TestAServerWithAnotherKeyGetsNoRequest(t *testing.T) {
	asked := false
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer plain.Close()
	for name, url := range map[string]string{"another key": other.URL, "no encryption": "https" + strings.TrimPrefix(plain.URL, "http")} {
		c := roomclient.Config{URL: url, Key: "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", Token: "x"}
		req, err := c.Request(t.Context(), http.MethodGet, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Client().Do(req)
		if err == nil || asked || errors.Is(err, roomclient.ErrOtherKey) != (name == "another key") {
			t.Errorf("%s: asked %v, %v", name, asked, err)
		}
	}
	c := roomclient.Config{URL: other.URL, Key: roomclient.KeyOf(other.Certificate()), Token: "x"}
	if resp, err := c.Client().Get(other.URL); err != nil || !asked {
		t.Errorf("the server with the key: %v", err)
	} else {
		resp.Body.Close()
	}
}

func TestAHandoutFromBeforeTheKeyIsOld(t *testing.T) {
	t.Setenv(roomclient.ConfigVariable, "")
	state := t.TempDir()
	old := `{"url":"http://192.168.1.5:7777","token":"labboard-x","learner":"Ada"}`
	if err := os.WriteFile(filepath.Join(state, roomclient.ConfigFile), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := roomclient.ReadConfig(state); err == nil || !strings.Contains(err.Error(), "ask your instructor for a new one") {
		t.Error(err)
	}
}

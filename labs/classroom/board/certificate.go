package board

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2/maybe"
	"k8s.io/client-go/util/cert"

	"github.com/example/operator-lab/labs/internal/roomclient"
)

// certificateFile has the certificate of a room's server and its private key, in the folder of a store.
const certificateFile = "room.pem"

// Certificate reads the certificate of the board in dir, and makes one where there is none. Nobody vouches for it but its key, as
// [roomclient.KeyOf] gives it, which stays the same as long as the file does.
func Certificate(dir string) (pair tls.Certificate, key string, err error) {
	path := filepath.Join(dir, certificateFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var private []byte
		if data, private, err = cert.GenerateSelfSignedCertKey("operator-lab", nil, nil); err == nil {
			data = append(data, private...)
			err = maybe.WriteFile(path, data, 0o600)
		}
	}
	if err == nil {
		pair, err = tls.X509KeyPair(data, data)
	}
	if err != nil {
		return pair, "", err
	}
	return pair, roomclient.KeyOf(pair.Leaf), nil
}

package handout

import (
	"path"
	"regexp"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// Image is where the room has its node image, for those with a container engine of their own.
type Image struct {
	// URL is the address of the archive, such as http://192.168.1.5:7777/images/node-amd64-0123456789ab.tar.gz.
	URL string
	// SHA256 is its digest in hexadecimal. The handout vouches for it; the way from the server to a learner does not.
	SHA256 string
	// Size is in bytes.
	Size int64
}

// Megabytes are those to download.
func (i Image) Megabytes() int64 { return (i.Size + 500_000) / 1_000_000 }

// Commands are what a learner types to have the image: the first goes on with a download that was interrupted.
func (i Image) Commands() []string {
	return []string{"curl -f -C - -O " + i.URL, "make node-image FILE=" + path.Base(i.URL) + " SHA256=" + i.SHA256}
}

var (
	// plain is an address that a shell takes as it is.
	plain  = regexp.MustCompile(`^[A-Za-z0-9:/.\[\]_-]+$`)
	sha256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func (h *Handout) checkImage() error {
	if h.Image == nil {
		return nil
	}
	if _, err := address(h.Image.URL); err != nil || !plain.MatchString(h.Image.URL) {
		return exit.Usage("the address of the node image for %s must be like http://192.168.1.5:7777/images/node.tar.gz", h.Learner.ID)
	}
	if !sha256.MatchString(h.Image.SHA256) {
		return exit.Usage("the node image for %s has no SHA-256 digest", h.Learner.ID)
	}
	return nil
}

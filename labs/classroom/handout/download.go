package handout

import (
	"path"
	"regexp"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// Download is a file that the room's server has.
type Download struct {
	// URL is its address, such as https://192.168.1.5:7777/images/node-amd64-0123456789ab.tar.gz.
	URL string
	// SHA256 is its digest in hexadecimal.
	SHA256 string
	// Size is in bytes.
	Size int64
}

// Megabytes are those to download.
func (d Download) Megabytes() int64 { return (d.Size + 500_000) / 1_000_000 }

func (d Download) name() string { return path.Base(d.URL) }

// CourseCommands are what a learner types to have the course.
func CourseCommands(key string, course *Download) []string {
	return []string{
		curl(key) + " -O " + course.URL,
		"echo '" + course.SHA256 + "  " + course.name() + "' | sha256sum -c && tar -xzf " + course.name(),
	}
}

// ImageCommands are what a learner types to have the node image: the first goes on with a download that was interrupted.
func ImageCommands(key string, image *Download) []string {
	return []string{
		curl(key) + " -C - -O " + image.URL,
		"make node-image FILE=" + image.name() + " SHA256=" + image.SHA256,
	}
}

// curl downloads from the server that has the key, and from no other; -k, because only the key vouches for it.
func curl(key string) string { return "curl -f -k --pinnedpubkey " + shellQuote(key) }

var (
	// plain is an address that a shell takes as it is.
	plain  = regexp.MustCompile(`^[A-Za-z0-9:/.\[\]_-]+$`)
	sha256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// check wants a download that the key vouches for, and a digest.
func (d *Download) check(what, like, learner string) error {
	if d == nil {
		return nil
	}
	u, err := address(d.URL)
	if err != nil || u.Scheme != "https" || !plain.MatchString(d.URL) {
		return exit.Usage("the address of the %s for %s must be like %s", what, learner, like)
	}
	if !sha256.MatchString(d.SHA256) {
		return exit.Usage("the %s for %s has no SHA-256 digest", what, learner)
	}
	return nil
}

package handout_test

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/classroom/handout"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// Whoever has an engine gets a line that can be typed as it is; nobody else is sent after an image.
func TestAHandoutNamesTheRoomsNodeImage(t *testing.T) {
	h := full(t)
	h.Lends = false
	if start := read(t, write(t, t.TempDir(), h).Dir, "START.md"); strings.Contains(start, "node-image") {
		t.Error("a room without an image has a handout that names one")
	}
	digest := strings.Repeat("0a", 32)
	h.Image = &handout.Download{
		URL: "https://192.168.1.5:7777/images/node-amd64-0123456789ab.tar.gz", SHA256: digest, Size: 412_345_678,
	}
	start := read(t, write(t, t.TempDir(), h).Dir, "START.md")
	for _, part := range []string{
		"\ncurl -f -k --pinnedpubkey '" + serverKey + "' -C - -O " + h.Image.URL + "\nmake node-image FILE=node-amd64-0123456789ab.tar.gz SHA256=" + digest + "\n```\n", ", 412 MB.", "Without an engine leave this out",
		"\n\nAt home,",
	} {
		if !strings.Contains(start, part) {
			t.Errorf("START.md lacks %q:\n%s", part, start)
		}
	}
	h.Lends = true // what an image is for, the room does
	if start := read(t, write(t, t.TempDir(), h).Dir, "START.md"); strings.Contains(start, "node-image") {
		t.Error("a learner who borrows clusters is sent after an image")
	}
}

func TestAnImageThatCannotBeTypedIsRefused(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for _, image := range []handout.Download{
		{URL: "https://room:7777/images/x.tar.gz;reboot", SHA256: digest},
		{URL: "https://room:7777/images/$(reboot)", SHA256: digest},
		{URL: "https://me:secret@room:7777/images/x.tar.gz", SHA256: digest},
		{URL: "http://room:7777/images/x.tar.gz", SHA256: digest},
		{URL: "images/x.tar.gz", SHA256: digest},
		{URL: "https://room:7777/images/x.tar.gz", SHA256: digest[1:]},
		{URL: "https://room:7777/images/x.tar.gz"},
	} {
		h := full(t)
		h.Image = &image
		_, err := handout.Write(t.Context(), t.TempDir(), h)
		if exit.Code(err) != exit.UsageError || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", image, err)
		}
	}
}

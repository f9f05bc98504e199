package boardtest_test

import (
	"errors"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// browserNames are the names under which Debian and others install the browser.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome"}

// findBrowser is the path of the browser. The error says how to install it.
func findBrowser() (string, error) {
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("the board is looked at in Chromium, and there is none: apt-get install chromium")
}

// browserOptions start the browser at path in a window of that size, without a screen, and with a profile in a folder for it
// alone. It asks nobody but the pages that it is sent to, and leaves nothing outside of that folder, of which the path
// has to be short: below it is a socket, for whose path Linux has 108 bytes.
func browserOptions(path, profile string, width, height int) []chromedp.ExecAllocatorOption {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		chromedp.Env("HOME="+profile, "TMPDIR="+profile), // for reports of its crashes, and for what it shares with itself
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-gpu", true), chromedp.WindowSize(width, height),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses one to root; it sees our own pages only
	}
	return options
}
